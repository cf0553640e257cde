import { describe, expect, test, vi } from 'vitest';
import { BACKENDS, createScenario } from '../support/scenario.ts';
import { FULL } from '../support/scenario-orders.ts';
import { expectPlanted } from '../support/scenario-truth.ts';

/** Ten times what a test takes on two idle cores. */
vi.setConfig({ testTimeout: 240_000 });

describe.concurrent.each(BACKENDS)('Ctrl-C on trueup up, on %s', (backend) => {
  test.sequential('drains: nothing is left being sent, and the next worker goes on', async ({
    onTestFinished,
  }) => {
    const scenario = await createScenario({ backend, size: FULL });
    onTestFinished(() => scenario.close());
    await scenario.startRuns();
    const up = scenario.startCommand('up');
    await scenario.arrived('gateway', 3);
    up.kill('SIGINT');
    expect(await up.exited).toEqual({ code: 0, signal: null });
    expect(await scenario.store('compensation').where({ state: 'sending' }).pluck('id')).toEqual([]);
    scenario.startWorker();
    await scenario.ended();
    await expectPlanted(scenario);
  });

  test.sequential('pressed twice ends at once, and nothing is lost or doubled', async ({
    onTestFinished,
  }) => {
    const scenario = await createScenario({ backend, size: FULL });
    onTestFinished(() => scenario.close());
    await scenario.startRuns();
    const up = scenario.startCommand('up');
    await scenario.arrived('gateway', 3);
    await scenario.gateway.holdNext('after-work');
    up.kill('SIGINT');
    await up.waitForLine(/"event":"draining"/);
    up.kill('SIGINT');
    expect(await up.exited).toEqual({ code: 130, signal: null });
    const sending = await scenario.store('compensation').where({ state: 'sending' }).pluck('id');
    expect(sending, 'the call that was not answered').not.toEqual([]);
    scenario.startWorker();
    // Takes half a minute: the leases of the command are the long ones of production.
    await scenario.ended();
    await expectPlanted(scenario);
  });
});
