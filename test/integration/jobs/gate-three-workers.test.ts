import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { type GateTiming, MINUTE } from '../../../src/compensate/gate/watermark.ts';
import { addMillis } from '../../../src/reconcile/instant.ts';
import { openCountOfRuns } from '../../../src/store/compensations.ts';
import { openDatabase, storeClock } from '../../../src/store/database.ts';
import { readRun } from '../../../src/store/list-runs.ts';
import { createRun } from '../../../src/store/runs.ts';
import { type ChildNode, spawnNode } from '../../support/child-process.ts';
import { createStore } from '../../support/database.ts';
import { ordersConfig, writeConfig } from '../../support/e2e-config.ts';
import { createOrders, orders, startBookings } from '../../support/e2e-orders.ts';
import { fullestWindow } from '../../support/fullest-window.ts';
import { redisUrl } from '../../support/redis.ts';
import { until } from '../../support/wait.ts';

/** A minute shrunk to ten seconds; the allowances stay as they are, so that a busy machine can use its slots. */
const TIMING: GateTiming = { ...MINUTE, windowMs: 10_000 };
const N = 20;
const ORDERS = 50;
const WORKER = fileURLToPath(new URL('../../support/e2e-gate-worker.mjs', import.meta.url));

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

describe.each(['PostgreSQL', 'Redis'])('three workers with the queue on %s', (backend) => {
  // A run is tried again when the machine was too busy to use nine tenths. That may not hide a broken watermark.
  const exceeded: number[] = [];
  afterAll(() => expect(exceeded).toEqual([]));
  const options = { timeout: 180_000, retry: 2 };
  it(
    'together never exceed the watermark in any window, and use at least nine tenths of it',
    options,
    async () => {
      const [store, data] = await Promise.all([createStore(), createOrders()]);
      stops.push(
        () => store.drop(),
        () => data.drop(),
      );
      await data.place(orders('lost', ORDERS));
      const api = await startBookings(data.pool, { dedupes: true });
      stops.push(() => api.close());
      const config = await writeConfig(
        ordersConfig({
          storeUrl: store.url,
          dataUrl: data.url,
          apiUrl: api.url,
          read: 'table',
          target: { watermark: N, idempotency: { dedupes: true } },
          top: { log: { level: 'warn' } },
          ...(backend === 'Redis' ? { queueUrl: redisUrl() } : {}),
        }),
      );
      stops.push(() => config.remove());
      const start = async (): Promise<ChildNode> => {
        const child = spawnNode([WORKER, config.path, JSON.stringify(TIMING)]);
        stops.push(() => child.stop());
        await child.waitForLine(/^up$/, { timeoutMs: 30_000 });
        return child;
      };
      const [victim] = await Promise.all([start(), start(), start()]);
      const db = openDatabase(store.url, { applicationName: 'trueup-test' });
      stops.push(() => db.destroy());
      const now = await storeClock(db);
      const run = await createRun(db, {
        reconciliation: 'orders',
        revision: null,
        trigger: 'adhoc',
        mode: 'compensate',
        window: { from: addMillis(now, -3_600_000), to: now },
        movesCoverage: false,
      });

      const arrivals = () => api.server.requests.filter((request) => request.method === 'POST');
      await until('a third has arrived', () => arrivals().length > ORDERS / 3, { timeoutMs: 60_000 });
      await victim.stop();
      await start();
      await until(
        'all repairs have ended',
        async () => (await readRun(db, run))?.phase === 'done' && (await openCountOfRuns(db, [run])) === 0,
        { timeoutMs: 90_000 },
      );
      const effects = await data.effects();
      expect(effects.size).toBe(ORDERS);
      expect(Math.max(...effects.values())).toBe(1);
      const at = arrivals().map((request) => request.at);
      const most = fullestWindow(at, TIMING.windowMs);
      if (most > N) exceeded.push(most);
      expect(most).toBeLessThanOrEqual(N);
      expect(fullestWindow(at, TIMING.windowMs)).toBeGreaterThanOrEqual(0.9 * N);
    },
  );
});
