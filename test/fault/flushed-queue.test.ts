import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/config/secret.ts';
import { createBackend } from '../../src/jobs/backend.ts';
import { readMeta } from '../../src/store/meta.ts';
import { redisUrl } from '../support/redis.ts';
import { BACKENDS, createScenario, RECONCILIATIONS, type Scenario } from '../support/scenario.ts';
import { FULL } from '../support/scenario-orders.ts';
import { flushQueue } from '../support/scenario-queue.ts';
import { expectPlanted } from '../support/scenario-truth.ts';
import { until } from '../support/wait.ts';

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
  test('again and again in mid-replay loses nothing and doubles nothing', async ({ onTestFinished }) => {
    const scenario = await createScenario({ backend, size: FULL });
    onTestFinished(() => scenario.close());
    await scenario.startRuns();
    const worker = scenario.startWorker();
    await worker.waitForLine(/^up$/, { timeoutMs: 30_000 });
    expect(await flushQueue(scenario), 'what was flushed').toBeGreaterThan(0);
    for (const arrived of [1, 4, 9, 16]) {
      const arrivals = () => scenario.gateway.arrivals() + scenario.warehouse.arrivals();
      await until(`${arrived} calls arrived`, () => arrivals() >= arrived, { timeoutMs: 30_000 });
      await flushQueue(scenario);
    }
    await scenario.ended();
    await expectPlanted(scenario);
    await until(
      'the schedulers are back',
      async () => (await schedulers(scenario)).join() === [...RECONCILIATIONS].sort().join(),
      { timeoutMs: 30_000 },
    );
  });
});
