import { afterEach, beforeEach, expect, test } from 'vitest';
import { configSchema, type Target } from '../../src/config/schema.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { type Db, openDatabase } from '../../src/store/database.ts';
import { holdGate, overrideWatermark } from '../../src/store/gates.ts';
import { storeSnapshot } from '../../src/store/snapshot.ts';
import { createStore, type TestDatabase } from '../support/database.ts';
import { storeDiff } from '../support/stored-diff.ts';

let store: TestDatabase;
let db: Db;

beforeEach(async () => {
  store = await createStore();
  db = openDatabase(store.url, { applicationName: 'store-snapshot.test' });
});

afterEach(async () => {
  await db.destroy();
  await store.drop();
});

function targets(input: Record<string, object>): Readonly<Record<string, Target>> {
  return configSchema.parse({ version: 1, reconciliations: {}, targets: input }).targets;
}

test('an empty store gives zeros for every configured target', async () => {
  const snapshot = await storeSnapshot(db, targets({ gateway: {}, warehouse: { watermark: 'unlimited' } }));
  expect(snapshot).toEqual({
    diffs: [],
    compensations: [],
    coverage: [],
    targets: [
      { target: 'gateway', watermark: 100, limit: 100, breaker: 'closed', held: false, maxSends: 0 },
      { target: 'warehouse', watermark: null, limit: null, breaker: 'closed', held: false, maxSends: 0 },
    ],
  });
});

test('counts diffs and compensations, and measures coverage by the clock of the store', async () => {
  await storeDiff(db, { reconciliation: 'orders', key: ['O-1'], state: 'ready' });
  await storeDiff(db, { reconciliation: 'orders', key: ['O-2'], state: 'ready' });
  await storeDiff(db, { reconciliation: 'orders', key: ['O-3'], kind: 'extra' });
  const healed = await storeDiff(db, { reconciliation: 'orders', key: ['O-4'], state: 'verified' });
  await db('diff').where({ id: healed }).update({ state: 'verified', closed_at: db.fn.now() });
  await db.raw(`update diff set first_seen = now() - interval '5 minutes' where kind = 'extra'`);
  await db.raw(`update diff set record_time = now() - interval '10 minutes' where business_key = '["O-1"]'`);
  await db.raw(
    `insert into coverage (reconciliation, covered_to) values ('orders', now() - interval '90 seconds')`,
  );
  const snapshot = await storeSnapshot(db, {});
  const oldestSeconds = expect.any(Number);
  expect(Math.floor((snapshot.diffs[0]?.oldestSeconds ?? 0) / 60)).toBe(5);
  expect(Math.floor((snapshot.coverage[0]?.provenLagSeconds ?? 0) / 60)).toBe(10);
  expect(snapshot.diffs).toEqual([
    { reconciliation: 'orders', kind: 'extra', count: 1, oldestSeconds },
    { reconciliation: 'orders', kind: 'missing', count: 2, oldestSeconds },
  ]);
  expect(snapshot.compensations).toEqual([{ target: 'gateway', state: 'ready', count: 2 }]);
  expect(snapshot.coverage[0]?.lagSeconds).toBeGreaterThanOrEqual(90);
  expect(snapshot.coverage[0]?.lagSeconds).toBeLessThan(120);
});

test('shows a person’s lower watermark and a hold, of the gate that targets share', async () => {
  await overrideWatermark(db, 'bank', { perMinute: 40, forMs: null });
  await holdGate(db, 'bank', 'maintenance', 'ann');
  const { targets: shown } = await storeSnapshot(db, targets({ refunds: { upstream: 'bank' }, other: {} }));
  expect(shown).toMatchObject([
    { target: 'refunds', watermark: 40, limit: 40, held: true },
    { target: 'other', watermark: 100, held: false },
  ]);
});

test('the most sends in any 60 s is half-open and leaves out what was not sent', async () => {
  await storeDiff(db, { reconciliation: 'orders', key: ['O-1'], state: 'ready' });
  await db.raw(
    `insert into attempt (compensation_id, number, target, worker, slot_at, deadline, outcome)
     select c.id, n, 'gateway', 'w', date_trunc('second', now()) - interval '10 minutes' + n * interval '20 seconds', now(),
            case when n = 3 then 'not-sent' else 'accepted' end
       from compensation c, generate_series(1, 9) n`,
  );
  const { targets: shown } = await storeSnapshot(db, targets({ gateway: {} }));
  expect(shown[0]?.maxSends).toBe(3);
});

test('what a snapshot says is what /metrics shows', async () => {
  await storeDiff(db, { reconciliation: 'orders', key: ['O-1'], state: 'ready' });
  const metrics = createMetrics({ version: '0.1.0' });
  metrics.setSnapshot(await storeSnapshot(db, targets({ gateway: { watermark: 60 } })));
  const text = await metrics.text();
  expect(text).toContain('trueup_diffs_open{reconciliation="orders",kind="missing"} 1');
  expect(text).toContain('trueup_backlog_seconds_to_zero{target="gateway"} 1');
});
