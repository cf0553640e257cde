import { describe, expect, type TestContext, test, vi } from 'vitest';
import { Secret } from '../../src/config/secret.ts';
import { createBackend } from '../../src/jobs/backend.ts';
import { readMeta } from '../../src/store/meta.ts';
import { redisUrl } from '../support/redis.ts';
import { BACKENDS, createScenario, RECONCILIATIONS, type Scenario } from '../support/scenario.ts';
import { FULL } from '../support/scenario-orders.ts';
import { flushQueue } from '../support/scenario-queue.ts';
import { expectPlanted } from '../support/scenario-truth.ts';
import { until } from '../support/wait.ts';

/** Ten times what a test takes on two idle cores. */
vi.setConfig({ testTimeout: 240_000 });

/** The schedulers that the queue has now. */
async function schedulers({ backend, store, storeUrl }: Scenario): Promise<string[]> {
  const url = new Secret(backend === 'redis' ? redisUrl() : storeUrl);
  const namespace = (await readMeta(store)).storeId.slice(0, 8);
  const queue = createBackend({ url, options: {} }, namespace, { onError: () => undefined });
  try {
    return (await queue.listTicks()).map(({ name }) => name).sort();
  } finally {
    await queue.close();
  }
}

describe.concurrent.each(BACKENDS)('a queue on %s that is flushed', (backend) => {
  async function startScenario({ onTestFinished }: TestContext): Promise<Scenario> {
    const scenario = await createScenario({ backend, size: FULL });
    onTestFinished(() => scenario.close());
    await scenario.startRuns();
    return scenario;
  }

  test.sequential('with the jobs of a whole replay in it, and no worker alive, loses none', async (context) => {
    const scenario = await startScenario(context);
    const worker = scenario.startWorker({ crashAt: 'after-claim' });
    await worker.stoppedAt('after-claim');
    await worker.stop();
    const queued = await scenario.store('compensation').where({ state: 'queued' }).pluck('id');
    expect(queued.length, 'rows that count on a job').toBeGreaterThan(1);
    expect(await flushQueue(scenario), 'what was flushed').toBeGreaterThanOrEqual(queued.length);
    scenario.startWorker();
    await scenario.ended();
    await expectPlanted(scenario);
  });

  test.sequential('again and again in mid-replay doubles nothing, and the schedulers return', async (context) => {
    const scenario = await startScenario(context);
    scenario.startWorker();
    let flushed = 0;
    for (const arrived of [1, 4, 9, 16]) {
      await scenario.arrived('gateway', arrived);
      flushed += await flushQueue(scenario);
    }
    expect(flushed, 'what was flushed').toBeGreaterThan(0);
    await scenario.ended();
    await expectPlanted(scenario);
    await until(
      'the schedulers are back',
      async () => (await schedulers(scenario)).join() === [...RECONCILIATIONS].sort().join(),
      { timeoutMs: 60_000 },
    );
  });
});
