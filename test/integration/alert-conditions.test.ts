import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { renderText } from '../../src/alert/message.ts';
import { refreshAlerts } from '../../src/alert/outbox.ts';
import type { Outcome } from '../../src/compensate/action.ts';
import { configSchema, type Target } from '../../src/config/schema.ts';
import { countConditions } from '../../src/store/alert-conditions.ts';
import { describeCondition } from '../../src/store/alert-facts.ts';
import { claimMessages } from '../../src/store/alert-messages.ts';
import type { Condition } from '../../src/store/alert-state.ts';
import { activateRevision, saveRevision } from '../../src/store/config-revisions.ts';
import { type Db, inTransaction, openDatabase } from '../../src/store/database.ts';
import { holdGate, releaseGate } from '../../src/store/gates.ts';
import { noteOutcome } from '../../src/store/note-outcome.ts';
import { createStore, type TestDatabase } from '../support/database.ts';
import { storeDiff, storeRun } from '../support/stored-diff.ts';

const ALERTS = {
  warning: ['chat'],
  action: ['chat', 'pager'],
  repeat: 14_400_000,
  link: 'https://trueup.example/',
};
let store: TestDatabase;
let db: Db;

beforeEach(async () => {
  store = await createStore();
  db = openDatabase(store.url, { applicationName: 'alert-conditions.test' });
});

afterEach(async () => {
  await db.destroy();
  await store.drop();
});

const refresh = () => inTransaction(db, (trx) => refreshAlerts(trx, ALERTS));
const claimOne = (channel: string, leaseMs = 30_000) => claimMessages(db, channel, () => 1, leaseMs);

async function conditions(): Promise<Condition[]> {
  const found: Condition[] = [];
  for (const counted of await countConditions(db)) found.push(await describeCondition(db, counted));
  return found;
}

async function messages(): Promise<{ channel: string; state: string; title: string }[]> {
  const { rows } = await db.raw(
    `select channel, state, message ->> 'title' as title from alert_message order by id`,
  );
  return rows;
}

function outcomeOf(how: Outcome['class'], code: string): Outcome {
  const nothing = { request: null, answer: null, error: null, retryAfterMs: null };
  return { class: how, code, durationMs: 5, unclassified: false, ...nothing };
}

function only<T>(rows: readonly T[]): T {
  const [row] = rows;
  if (row === undefined || rows.length !== 1) throw new Error(`expected one, got ${rows.length}`);
  return row;
}

describe('what is wrong', () => {
  test('a store without trouble has none', async () => {
    await storeRun(db, { reconciliation: 'orders', result: 'complete' });
    expect(await conditions()).toEqual([]);
  });

  test('2,000 diffs are one condition per kind with counts, three samples and the most frequent error', async () => {
    for (let n = 0; n < 4; n++) {
      await storeDiff(db, {
        reconciliation: 'orders',
        key: [`O-${n}`, 'CNY'],
        state: 'escalated',
        escalation: 'refused',
        attempt:
          n === 0
            ? {
                outcome: 'fatal',
                code: 'business-SIGN_ERROR',
                error: { name: 'Error', message: 'refused', cause: { message: 'bad signature' } },
              }
            : { outcome: 'fatal', code: 'http-400', answer: { status: 400, body: 'amount is missing' } },
      });
    }
    await db.raw(
      `insert into diff (reconciliation, business_key, kind, trace_id, next_look)
       select 'orders', '["X-' || n || '"]', 'extra', 'a', now() from generate_series(1, 1996) n`,
    );
    const [diffs, escalated] = await conditions();
    expect(diffs).toMatchObject({
      reconciliation: 'orders',
      kind: 'diffs',
      severity: 'warning',
      count: 1996,
    });
    expect(escalated).toMatchObject({ kind: 'escalated', severity: 'action', count: 4 });
    expect(escalated?.facts.dominantError).toEqual({ code: 'http-400', count: 3, of: 4 });
    expect(escalated?.facts.samples).toEqual([
      { key: 'O-0 / CNY', text: 'refused: bad signature', id: expect.any(String) },
      { key: 'O-1 / CNY', text: 'http-400 amount is missing', id: expect.any(String) },
      { key: 'O-2 / CNY', text: 'http-400 amount is missing', id: expect.any(String) },
    ]);
    expect(escalated?.facts.oldest).toMatch(/Z$/);
  });

  test('diffs of a run that only checked carry what the guard saw in them, until a later run sees nothing', async () => {
    const runId = await storeRun(db, { reconciliation: 'orders', result: 'complete' });
    await db('run')
      .where({ id: runId })
      .update({ guard: { pattern: 'constant factor', facts: {} } });
    await storeDiff(db, { reconciliation: 'orders', key: ['O-1'], runId });
    const detail = async () => only(await conditions()).facts.detail;
    expect(await detail()).toBe('being repaired: 0; the guard saw: constant factor');
    await storeRun(db, { reconciliation: 'orders', result: 'complete' });
    expect(await detail()).toBe('being repaired: 0');
  });

  test('only the latest compensation of a diff says whether a person is needed', async () => {
    const id = await storeDiff(db, {
      reconciliation: 'orders',
      key: ['O-1'],
      state: 'escalated',
      escalation: 'refused',
    });
    expect(only(await conditions()).kind).toBe('escalated');
    await db.raw(
      `insert into compensation (diff_id, reconciliation, repair, side, target, order_scope, business_key, operation,
              idempotency_key, revision, fingerprint, payload, state, trace_id)
       select diff_id, reconciliation, repair, side, target, order_scope, business_key, operation,
              idempotency_key, 1, fingerprint, payload, 'ready', trace_id from compensation where diff_id = ?`,
      [id],
    );
    const repairing = only(await conditions());
    expect(repairing).toMatchObject({ kind: 'diffs', facts: { detail: 'being repaired: 1' } });
    await db('diff').where({ id }).update({ state: 'verified', closed_at: db.fn.now() });
    expect(await conditions()).toEqual([]);
  });

  test('a run on hold speaks for its diffs', async () => {
    const runId = await storeRun(db, {
      reconciliation: 'orders',
      phase: 'held',
      reason: 'a constant offset of 1 h',
    });
    await storeDiff(db, { reconciliation: 'orders', key: ['O-1'], runId });
    const held = only(await conditions());
    expect(held).toMatchObject({ kind: 'run-held', severity: 'action', count: 1 });
    expect(held.facts.samples).toEqual([
      { key: `run ${runId}`, text: 'a constant offset of 1 h', id: runId },
    ]);
  });

  test('incomplete runs count since the last complete one, by the time they ended', async () => {
    await storeRun(db, { reconciliation: 'orders', result: 'incomplete', endedMinutesAgo: 50 });
    await storeRun(db, { reconciliation: 'orders', result: 'complete', endedMinutesAgo: 40 });
    await storeRun(db, {
      reconciliation: 'orders',
      result: 'incomplete',
      reason: 'side away',
      endedMinutesAgo: 30,
    });
    await storeRun(db, { reconciliation: 'orders', result: 'failed', endedMinutesAgo: 20 });
    await storeRun(db, { reconciliation: 'orders', result: 'cancelled', endedMinutesAgo: 10 });
    const found = only(await conditions());
    expect(found).toMatchObject({ kind: 'run-incomplete', count: 2 });
    expect(found.facts.samples[0]?.text).toBe('side away');
    await storeRun(db, { reconciliation: 'orders', result: 'complete' });
    expect(await conditions()).toEqual([]);
  });

  /** The gate's target failed from so many minutes ago until now. */
  const downFor = (gate: string, minutes: number) =>
    db('gate')
      .insert({
        gate,
        purpose: 'send',
        outage: JSON.stringify({ sinceMs: Date.now() - minutes * 60_000, seenMs: Date.now(), heldMs: 0 }),
      })
      .onConflict(['gate', 'purpose'])
      .merge();

  test('a target that stays down stalls all repairs that wait for it, a short outage none', async () => {
    const waiting = { reconciliation: 'orders', state: 'deferred', target: 'gateway' };
    await storeDiff(db, { ...waiting, key: ['O-1'] });
    await storeDiff(db, { ...waiting, key: ['O-2'] });
    await storeDiff(db, { ...waiting, key: ['O-3'], state: 'ready' });
    await storeDiff(db, { ...waiting, key: ['O-4'], target: 'other' });
    await downFor('gateway', 4);
    expect((await conditions()).map(({ kind }) => kind)).toEqual(['diffs']);
    await downFor('gateway', 20);
    const stalled = (await conditions()).find(({ kind }) => kind === 'replay-stalled');
    expect(stalled).toMatchObject({ severity: 'warning', count: 3 });
    expect(stalled?.facts.dominantError).toEqual({ code: 'target gateway', count: 3, of: 3 });
    expect(stalled?.facts.samples[0]?.text).toMatch(/^down since \d{4}-\d\d-\d\d \d\d:\d\d UTC$/);
  });

  test('a target that answers 500 for long stalls the repairs of every target behind its gate', async () => {
    const parsed = configSchema.parse({
      version: 1,
      reconciliations: {},
      targets: { refunds: { upstream: 'bank', breaker: { consecutive: 1 } } },
    });
    const target = parsed.targets['refunds'] as Target;
    const document = {
      reconciliations: { orders: {} },
      targets: { refunds: { upstream: 'bank' }, bank: {} },
    };
    const revision = await saveRevision(db, { digest: 'd', document, actor: 'test' });
    await activateRevision(db, revision, 'test', 'test');
    const note = (code: string, how: 'retryable' | 'accepted') =>
      inTransaction(db, (trx) => noteOutcome(trx, { gate: 'bank', target, outcome: outcomeOf(how, code) }));
    await storeDiff(db, { reconciliation: 'orders', key: ['O-1'], target: 'refunds', state: 'retrying' });
    await storeDiff(db, { reconciliation: 'orders', key: ['O-2'], target: 'other', state: 'ready' });
    await note('http-500', 'retryable');
    await note('http-500', 'retryable');
    expect((await conditions()).map(({ kind }) => kind)).toEqual(['diffs']);
    await downFor('bank', 6);
    const stalled = (await conditions()).find(({ kind }) => kind === 'replay-stalled');
    expect(stalled).toMatchObject({ count: 1, facts: { dominantError: { code: 'target refunds' } } });
    await note('http-200', 'accepted');
    expect((await conditions()).map(({ kind }) => kind)).toEqual(['diffs']);
  });

  test('a hold of the whole store and of one gate is told, with its reason', async () => {
    await holdGate(db, 'gateway', 'it sweats', 'ann');
    await db('meta').update({ replay_held: 'the store moved' });
    const held = await conditions();
    expect(held).toMatchObject([
      { kind: 'replay-held', reconciliation: 'gateway', severity: 'action', count: 1 },
      { kind: 'replay-held', reconciliation: 'store', severity: 'action', count: 1 },
    ]);
    expect(held.map(({ facts }) => facts.samples)).toEqual([
      [{ key: 'gateway', text: 'it sweats', id: null }],
      [{ key: 'store', text: 'the store moved', id: null }],
    ]);
    await refresh();
    await releaseGate(db, 'gateway');
    await refresh();
    expect((await messages()).filter(({ channel }) => channel === 'pager').map(({ title }) => title)).toEqual(
      ['gateway: sends are on hold', 'all sends are on hold', 'gateway: sends go on'],
    );
  });

  test('a capped hold-back is told until a later scheduled run was not capped', async () => {
    const capped = await storeRun(db, { reconciliation: 'orders', result: 'complete' });
    await db('run').where({ id: capped }).update({ capped_holdback_ms: 600_000 });
    await db('coverage').insert({ reconciliation: 'orders', covered_to: db.fn.now() });
    const found = only(await conditions());
    expect(found).toMatchObject({ kind: 'holdback-capped', reconciliation: 'orders', severity: 'action' });
    expect(found.facts.samples[0]?.text).toContain('held back by 600 s');
    await storeRun(db, { reconciliation: 'orders', result: 'complete' });
    expect(await conditions()).toEqual([]);
  });

  test('what the active configuration no longer has is nobody’s trouble', async () => {
    await storeRun(db, { reconciliation: 'orders', result: 'incomplete' });
    await storeRun(db, { reconciliation: 'removed', result: 'incomplete' });
    expect((await conditions()).map(({ reconciliation }) => reconciliation)).toEqual(['orders', 'removed']);
    const document = { reconciliations: { orders: {} }, targets: {} };
    await activateRevision(
      db,
      await saveRevision(db, { digest: 'd', document, actor: 'test' }),
      'test',
      'test',
    );
    expect((await conditions()).map(({ reconciliation }) => reconciliation)).toEqual(['orders']);
  });

  test('the most frequent error of very many is that of the oldest, and the message says so', async () => {
    await db.raw(
      `insert into diff (reconciliation, business_key, kind, trace_id, next_look, first_seen)
       select 'orders', '["X-' || n || '"]', 'missing', 'a', now(), now() - n * interval '1 minute' from generate_series(1, 700) n`,
    );
    await db.raw(
      `insert into compensation (diff_id, reconciliation, repair, side, target, order_scope, business_key, operation,
              idempotency_key, fingerprint, payload, state, escalation, ended_at, trace_id)
       select id, reconciliation, 'missing', 'downstream', 'gateway', 'orders', business_key, 'create', business_key, 'f',
              '{}', 'escalated', 'refused', now(), 'a' from diff`,
    );
    const [escalated] = await conditions();
    expect(escalated).toMatchObject({
      count: 700,
      facts: { dominantError: { code: 'refused', count: 500, of: 500 } },
    });
    expect(escalated?.facts.samples.map(({ key }) => key)).toEqual(['X-700', 'X-699', 'X-698']);
    await refresh();
    const { message } = only(await claimOne('pager'));
    expect(renderText(message, { bytes: 2000 })).toContain('most frequent: refused (500 of the oldest 500)');
  });
});
