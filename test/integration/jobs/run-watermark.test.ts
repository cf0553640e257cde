import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GateTiming, MINUTE } from '../../../src/compensate/gate/watermark.ts';
import { addMillis } from '../../../src/reconcile/instant.ts';
import { openCountOfRuns } from '../../../src/store/compensations.ts';
import { type Db, openDatabase, storeClock } from '../../../src/store/database.ts';
import { readRun } from '../../../src/store/list-runs.ts';
import { createRun } from '../../../src/store/runs.ts';
import { spawnNode } from '../../support/child-process.ts';
import { createStore } from '../../support/database.ts';
import { ordersConfig, writeConfig } from '../../support/e2e-config.ts';
import { type BookingsApi, createOrders, orders, startBookings } from '../../support/e2e-orders.ts';
import { fullestWindow } from '../../support/fullest-window.ts';
import { until } from '../../support/wait.ts';

/** A minute shrunk to ten seconds, as in gate-three-workers.test.ts. */
const TIMING: GateTiming = { ...MINUTE, windowMs: 10_000 };
const TARGET = 60;
const OWN = 10;
const SLOW = 24;
const FAST = 50;
const WORKER = fileURLToPath(new URL('../../support/e2e-gate-worker.mjs', import.meta.url));

const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

describe('a run with a watermark of its own, beside one without, on two workers', () => {
  let api: BookingsApi;
  let db: Db;
  let slowLeft: number;

  const posts = (prefix: string) =>
    api.server.requests.filter(({ method, body }) => method === 'POST' && body.includes(`"${prefix}-`));

  async function start(watermark: number | null): Promise<string> {
    const now = await storeClock(db);
    return createRun(db, {
      reconciliation: 'orders',
      revision: null,
      trigger: 'adhoc',
      mode: 'compensate',
      window: { from: addMillis(now, -3_600_000), to: now },
      movesCoverage: false,
      watermark,
    });
  }

  beforeAll(async () => {
    const [store, data] = await Promise.all([createStore(), createOrders()]);
    stops.push(
      () => store.drop(),
      () => data.drop(),
    );
    api = await startBookings(data.pool, { dedupes: true });
    stops.push(() => api.close());
    const config = await writeConfig(
      ordersConfig({
        storeUrl: store.url,
        dataUrl: data.url,
        apiUrl: api.url,
        read: 'table',
        target: { watermark: TARGET, idempotency: { dedupes: true } },
        top: { log: { level: 'warn' } },
      }),
    );
    stops.push(() => config.remove());
    db = openDatabase(store.url, { applicationName: 'trueup-test' });
    stops.push(() => db.destroy());
    for (let worker = 0; worker < 2; worker += 1) {
      const child = spawnNode([WORKER, config.path, JSON.stringify(TIMING)]);
      stops.push(() => child.stop());
      await child.waitForLine(/^up$/, { timeoutMs: 30_000 });
    }
    await data.place(orders('slow', SLOW));
    const slow = await start(OWN);
    await until('the first of the slow run was sent', () => posts('slow').length > 0, { timeoutMs: 30_000 });
    await data.place(orders('fast', FAST));
    const fast = await start(null);
    // The slow run's rows are the older ones, so each of them would go first at the target's rate.
    await until('the other run has sent all', () => posts('fast').length >= FAST, { timeoutMs: 60_000 });
    slowLeft = SLOW - posts('slow').length;
    const ended = async () =>
      (await readRun(db, fast))?.phase === 'done' && (await openCountOfRuns(db, [slow, fast])) === 0;
    await until('all repairs have ended', ended, { timeoutMs: 90_000 });
  }, 240_000);

  it('sends no more than its own number in any window', () => {
    const at = posts('slow').map((request) => request.at);
    expect(at).toHaveLength(SLOW);
    expect(fullestWindow(at, TIMING.windowMs)).toBeLessThanOrEqual(OWN);
  });

  it('leaves the rest of the watermark to the others, which are done before it', () => {
    expect(posts('fast')).toHaveLength(FAST);
    expect(slowLeft).toBeGreaterThan(0);
  });

  it('counts against the target like any other', () => {
    const at = [...posts('slow'), ...posts('fast')].map((request) => request.at);
    expect(fullestWindow(at, TIMING.windowMs)).toBeLessThanOrEqual(TARGET);
  });
});
