import { describe, expect, type TestContext, test, vi } from 'vitest';
import { BACKENDS, type Backend, createScenario, type Scenario } from '../support/scenario.ts';
import { FULL } from '../support/scenario-orders.ts';
import type { HeldAt } from '../support/scenario-target.ts';
import { expectCoverageBehindSuspects, expectPlanted } from '../support/scenario-truth.ts';
import { until } from '../support/wait.ts';

/** Ten times what a test takes on two idle cores. */
vi.setConfig({ testTimeout: 240_000 });

/** Crash points of the product, in the order of the flow; the number says at which passing the worker dies. */
const POINTS = [
  'after-commit-before-run-ring',
  'after-diff:5',
  'before-commit:5',
  'after-recheck',
  'before-plan-commit',
  'after-commit-before-ring:2',
  'after-claim:3',
  'after-slot:4',
  'after-answer:4',
  'before-record:4',
  'before-settle:2',
];
const HELD: readonly (readonly ['gateway' | 'warehouse', HeldAt])[] = [
  ['gateway', 'before-work'],
  ['gateway', 'after-work'],
  ['warehouse', 'before-work'],
  ['warehouse', 'after-work'],
];

async function startScenario(backend: Backend, context: TestContext): Promise<Scenario> {
  const scenario = await createScenario({ backend, size: FULL });
  // The test's own hook: the two backends run side by side.
  context.onTestFinished(() => scenario.close());
  await scenario.startRuns();
  return scenario;
}

/** A second worker does the rest, and then nothing tells that the first one died. */
async function expectRestDone(scenario: Scenario): Promise<void> {
  await expectCoverageBehindSuspects(scenario);
  scenario.startWorker();
  await scenario.ended();
  await expectPlanted(scenario);
}

// The two backends side by side, within each one test after the other: two cores carry no more.
describe.concurrent.each(BACKENDS)('a worker on %s that is killed', (backend) => {
  test.sequential.for(POINTS)(
    'at %s changes nothing of what is found and repaired',
    async (crashAt, context) => {
      const scenario = await startScenario(backend, context);
      const worker = scenario.startWorker({ crashAt });
      await worker.stoppedAt(crashAt);
      await worker.stop();
      await expectRestDone(scenario);
    },
  );

  test.sequential.for(HELD)(
    'while the %s has a call of it (%s) sends no repair twice',
    async ([target, at], context) => {
      const scenario = await startScenario(backend, context);
      const worker = scenario.startWorker();
      await scenario.arrived(target, 3);
      const order = await scenario[target].holdNext(at);
      await worker.stop();
      expect(order).toMatch(/^PA/);
      await expectRestDone(scenario);
    },
  );

  test.sequential('in the drain loses nothing', async (context) => {
    const scenario = await startScenario(backend, context);
    const worker = scenario.startWorker({ crashAt: 'in-drain' });
    await scenario.arrived('gateway', 3);
    worker.kill('SIGTERM');
    await worker.stoppedAt('in-drain');
    await worker.stop();
    await expectRestDone(scenario);
  });

  test.sequential('between an alert and its record sends that alert again under the same id', async (context) => {
    const scenario = await startScenario(backend, context);
    const worker = scenario.startWorker({ crashAt: 'in-alert-delivery' });
    await worker.stoppedAt('in-alert-delivery');
    await worker.stop();
    const idsOf = () => scenario.alerts.map(({ headers }) => headers['webhook-id']);
    const [told] = idsOf();
    expect(told).toBeDefined();
    await expectRestDone(scenario);
    const waiting = () => scenario.store('alert_message').whereNot('state', 'sent').select('id', 'state');
    await until('every alert is delivered', async () => (await waiting()).length === 0);
    expect(idsOf().filter((id) => id === told)).toHaveLength(2);
  });
});
