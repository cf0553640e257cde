import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { executePlan } from '../../../src/jobs/execute-plan.ts';
import { closeDiffs } from '../../../src/jobs/operator.ts';
import { stepRun } from '../../../src/jobs/worker.ts';
import { listAudit } from '../../../src/store/audit.ts';
import { listDiffs } from '../../../src/store/list-diffs.ts';
import { planOfRun, type StoredPlan } from '../../../src/store/plans.ts';
import { areReading } from '../../../src/store/run-progress.ts';
import type { RunMode } from '../../../src/store/runs.ts';
import { createStore } from '../../support/database.ts';
import { type RunningApp, startApp } from '../../support/e2e-app.ts';
import { ordersConfig, writeConfig } from '../../support/e2e-config.ts';
import { planRepairs } from '../../support/e2e-ledger.ts';
import {
  type BookingsApi,
  createOrders,
  type Order,
  type OrdersDatabase,
  startBookings,
} from '../../support/e2e-orders.ts';
import { until } from '../../support/wait.ts';

/** No worker runs here: what is in the ledger stays there. */

const ACTOR = { name: 'on-call', origin: 'test' };
const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

interface Shop {
  readonly running: RunningApp;
  readonly data: OrdersDatabase;
  readonly api: BookingsApi;
  plan(): Promise<{ run: string; plan: StoredPlan }>;
  execute(id: string): ReturnType<typeof executePlan>;
  ledger(): Promise<Record<string, string>>;
}

/** Does a run's steps, without a worker that would send. */
async function reconcile({ app, createRun }: RunningApp, mode: RunMode): Promise<string> {
  const run = await createRun(mode);
  const parts = app.workerParts({ keepsSchedules: false });
  await until('the run has ended', async () => {
    await stepRun(parts, run);
    return !(await areReading(app.db, [run]));
  });
  return run;
}

async function setUp(placed: readonly Order[], reconciliation: object = {}): Promise<Shop> {
  const [store, data] = await Promise.all([createStore(), createOrders()]);
  stops.push(
    () => store.drop(),
    () => data.drop(),
  );
  await data.place(placed);
  const api = await startBookings(data.pool, { dedupes: true });
  stops.push(() => api.close());
  const config = await writeConfig(
    ordersConfig({
      storeUrl: store.url,
      dataUrl: data.url,
      apiUrl: api.url,
      read: 'table',
      reconciliation: { recheck: { delay: '50ms' }, ...reconciliation },
    }),
  );
  stops.push(() => config.remove());
  const running = await startApp({ configPath: config.path, startsWorker: false, level: 'warn' });
  stops.push(() => running.stop());
  const { app } = running;
  return {
    running,
    data,
    api,
    async plan() {
      const run = await reconcile(running, 'plan');
      const plan = await planOfRun(app.db, run);
      if (plan === null) throw new Error(`run ${run} has no plan`);
      return { run, plan };
    },
    execute: (id) => executePlan(app, id, { actor: ACTOR, watermark: null }),
    async ledger() {
      const rows: { business_key: string; state: string }[] = await app
        .db('compensation')
        .orderBy('id')
        .select('business_key', 'state');
      return Object.fromEntries(rows.map((row) => [JSON.parse(row.business_key)[0], row.state]));
    },
  };
}

describe('a plan', () => {
  let shop: Shop;
  beforeAll(async () => {
    shop = await setUp('same changed healed decided busy'.split(' ').map((no) => ({ no })));
    await shop.data.book([{ no: 'extra' }]);
  });

  const idOf = async (no: string) => {
    const [diff] = await listDiffs(shop.running.app.db, { key: [no] }, { limit: 1 });
    return diff?.id ?? '';
  };

  it('says what would be sent, and puts nothing into the ledger', async () => {
    const { plan, run } = await shop.plan();
    expect(plan).toMatchObject({
      runId: run,
      reconciliation: 'orders',
      summary: {
        byKind: { missing: 5 },
        byTarget: { bookings: 5 },
        left: { reported: 1, underWay: 0, needPerson: 0 },
      },
      expired: false,
      executedAt: null,
      outcome: null,
    });
    expect(await shop.ledger()).toEqual({});
    const { db } = shop.running.app;
    const { hours } = await db('plan')
      .where({ id: plan.id })
      .first(db.raw('extract(epoch from expires_at - created_at)::float8 / 3600 as hours'));
    expect(hours).toBeCloseTo(24, 3);
  });

  it('leaves out what is under way, and what is in front of a person', async () => {
    const { app } = shop.running;
    await shop.data.place([{ no: 'escalated' }]);
    await planRepairs(app, 'orders', [['escalated']], 'ready');
    const repair = { business_key: '["escalated"]' };
    await app.db('compensation').where(repair).update({ state: 'queued' });
    await app
      .db('compensation')
      .where(repair)
      .update({ state: 'escalated', escalation: 'unresolved', ended_at: app.db.raw('now()') });
    await shop.data.place([{ no: 'planned' }]);
    await planRepairs(app, 'orders', [['planned']]);
    // Outside the window by now, and nobody has repaired it: part of the plan, as a repairing run would take it up.
    await shop.data.pool.query(
      `update orders set updated_at = updated_at - interval '3 hours' where order_no = 'same'`,
    );
    const { plan } = await shop.plan();
    expect(plan.summary).toMatchObject({
      byKind: { missing: 5 },
      left: { reported: 1, underWay: 1, needPerson: 1 },
    });
  });

  it('executed, plans the rest and skips what changed, was decided on or is under way', async () => {
    const { app } = shop.running;
    const { plan, run } = await shop.plan();
    await shop.data.pool.query(`update orders set amount = 99 where order_no = 'changed'`);
    await shop.data.book([{ no: 'healed' }]);
    // A later check sees the change; what has healed is closed by a look.
    await reconcile(shop.running, 'check');
    await app
      .db('diff')
      .where({ id: await idOf('healed') })
      .update({ state: 'healed', closed_at: app.db.raw('now()'), closed_by: 'trueup' });
    const reason = 'by phone';
    await closeDiffs(app.db, [await idOf('decided')], { state: 'resolved' }, { actor: ACTOR, reason });
    await planRepairs(app, 'orders', [['busy']]);

    const executed = await shop.execute(plan.id);
    expect(executed).toEqual({
      runId: run,
      outcome: { planned: 1, skipped: { changed: 2, decided: 1, underWay: 1, notPlanned: 0 } },
    });
    expect(await shop.ledger()).toMatchObject({ same: 'planned', busy: 'planned' });
    expect(Object.keys(await shop.ledger()).sort()).toEqual(['busy', 'escalated', 'planned', 'same']);
    const repair = await app.db('compensation').where({ business_key: '["same"]' }).first();
    expect(repair).toMatchObject({ run_id: run, operation: 'missing' });
    expect(await listAudit(app.db, { subject: `plan ${plan.id}` }, { limit: 9 })).toMatchObject([
      {
        actor: 'on-call',
        action: 'plan.execute',
        before: { run },
        after: { planned: 1, skipped: { changed: 2 } },
      },
    ]);
    await expect(shop.execute(plan.id)).rejects.toMatchObject({
      code: 'TRU_PLAN_ENDED',
      message: expect.stringMatching(/executed already.*on-call/),
    });
  });

  it('is executed once also by two at once', async () => {
    await shop.data.place([{ no: 'twice' }]);
    const { plan } = await shop.plan();
    const ends = await Promise.allSettled([shop.execute(plan.id), shop.execute(plan.id)]);
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const { db } = shop.running.app;
    expect(await db('compensation').where({ business_key: '["twice"]' })).toHaveLength(1);
  });

  it('is refused after it expired, and plans nothing', async () => {
    await shop.data.place([{ no: 'late' }]);
    const { plan } = await shop.plan();
    const { db } = shop.running.app;
    await db('plan')
      .where({ id: plan.id })
      .update({ expires_at: db.raw('clock_timestamp()') });
    await expect(shop.execute(plan.id)).rejects.toMatchObject({ code: 'TRU_PLAN_ENDED', exit: 2 });
    expect(Object.keys(await shop.ledger())).not.toContain('late');
  });

  it('that is none, is refused', async () => {
    await expect(shop.execute('999999')).rejects.toMatchObject({ code: 'TRU_NO_PLAN', exit: 2 });
    await expect(shop.execute('7; drop')).rejects.toMatchObject({ code: 'TRU_NO_ID', exit: 2 });
  });
});

describe('a plan of a run in which the guard saw something', () => {
  it('is stored, and executing it is the release', async () => {
    const shop = await setUp([{ no: 'a' }, { no: 'b' }], { guard: { maxDiffs: 1 } });
    const { db } = shop.running.app;
    const { plan, run } = await shop.plan();
    expect(await db('run').where({ id: run }).first()).toMatchObject({
      mode: 'plan',
      phase: 'done',
      reason: expect.stringContaining('the guard saw'),
      guard: { pattern: expect.any(String) },
    });
    expect(await shop.execute(plan.id)).toMatchObject({ outcome: { planned: 2 } });
    expect(await db('run').where({ id: run }).first()).toMatchObject({
      phase: 'done',
      result: 'complete',
      verdict: 'differ',
      guard: { released: `plan ${plan.id} was executed by on-call` },
    });
    expect(await shop.ledger()).toEqual({ a: 'planned', b: 'planned' });
  });

  it('cannot be executed once the run was discarded', async () => {
    const shop = await setUp([{ no: 'a' }, { no: 'b' }], { guard: { maxDiffs: 1 } });
    const { db } = shop.running.app;
    const { plan, run } = await shop.plan();
    await db('run').where({ id: run }).update({ result: 'discarded' });
    await expect(shop.execute(plan.id)).rejects.toThrow(/discarded/);
    expect(await shop.ledger()).toEqual({});
  });
});
