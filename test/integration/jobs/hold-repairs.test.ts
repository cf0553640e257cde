import { expect, test } from 'vitest';
import { holdRepairs, releaseRepairs } from '../../../src/jobs/hold-repairs.ts';
import { planDiff } from '../../../src/jobs/plan-findings.ts';
import { runCompensation } from '../../../src/jobs/run-compensation.ts';
import { lookBoth } from '../../../src/reconcile/look.ts';
import { storeClock } from '../../../src/store/database.ts';
import { dispatchDue, promotePlanned } from '../../../src/store/dispatchable.ts';
import { record } from '../../support/records.ts';
import { type RepairFixture, repairFixture } from '../../support/repair-fixture.ts';
import { storeForFile } from '../store/store.ts';

const store = storeForFile();
const decision = { actor: { name: 'ann', origin: 'cli here' }, reason: 'the customer asked' };

/** How a repair comes into each state from which it can be held, and what it takes along. */
const PATHS = {
  planned: [],
  ready: ['ready'],
  queued: ['ready', 'queued'],
  retrying: ['ready', 'queued', 'sending', 'retrying'],
  deferred: ['ready', 'queued', 'deferred'],
} as const;

async function repairIn(fixture: RepairFixture, no: string, states: readonly string[]) {
  const id = await fixture.plan(no);
  for (const state of states) await store.db('compensation').where({ id }).update({ state, ring: 1 });
  const { diff_id: diff } = await fixture.row(id);
  return { id, diff: String(diff) };
}

test.each(Object.entries(PATHS))(
  'a repair that is %s is held, is not sent, and goes on when released',
  async (name, path) => {
    const fixture = repairFixture(store.db, `hold-${name}`);
    const { id, diff } = await repairIn(fixture, 'A-1', path);
    await store.db('compensation').where({ id }).update({ attempts: 1, undecided_since: store.db.fn.now() });
    expect(await holdRepairs(store.db, [diff], decision)).toEqual([
      { id: diff, done: true, what: 'repair on hold' },
    ]);
    expect(await fixture.row(id)).toMatchObject({ state: 'held', undecided_since: null });
    await promotePlanned(store.db, 1000);
    expect(await dispatchDue(store.db, fixture.pair.name, 10, 30_000)).toEqual([]);
    await runCompensation(fixture.deps, { id, ring: 1 });
    expect(fixture.sender.sent).toEqual([]);
    expect(await releaseRepairs(store.db, [diff], decision)).toMatchObject([{ done: true }]);
    await promotePlanned(store.db, 1000);
    expect(await dispatchDue(store.db, fixture.pair.name, 10, 30_000)).toMatchObject([{ id, retry: true }]);
    expect(await fixture.events(id)).toEqual(['held', 'released']);
    const audit = await store
      .db('audit')
      .where({ subject: `diff ${diff}` })
      .orderBy('id')
      .select('action', 'actor', 'reason');
    expect(audit).toEqual([
      { action: 'diff.hold', actor: 'ann', reason: decision.reason },
      { action: 'diff.release', actor: 'ann', reason: decision.reason },
    ]);
  },
);

test.each(['sending', 'unknown', 'applied'])(
  'a send that left already is not held while it is %s',
  async (state) => {
    const fixture = repairFixture(store.db, `hold-${state}`);
    const path = state === 'sending' ? ['ready', 'queued', 'sending'] : ['ready', 'queued', 'sending', state];
    const { id, diff } = await repairIn(fixture, 'A-1', path);
    expect(await holdRepairs(store.db, [diff], decision)).toEqual([
      { id: diff, done: false, why: 'its send left already; looks settle it' },
    ]);
    expect((await fixture.row(id)).state).toBe(state);
    expect(await store.db('audit').where({ subject: `diff ${diff}` })).toEqual([]);
  },
);

test('says so when there is nothing to hold or to release', async () => {
  const fixture = repairFixture(store.db, 'hold-nothing');
  const { diff } = await repairIn(fixture, 'A-1', []);
  expect(await releaseRepairs(store.db, [diff, '999999'], decision)).toMatchObject([
    { id: diff, done: false, why: 'no repair of it is on hold' },
    { id: '999999', done: false, why: 'there is no open diff with this id' },
  ]);
  await holdRepairs(store.db, [diff], decision);
  expect(await holdRepairs(store.db, [diff], decision)).toMatchObject([
    { done: false, why: 'no repair of it waits' },
  ]);
});

test('a held repair stays on hold when the records change and it is planned anew', async () => {
  const fixture = repairFixture(store.db, 'hold-replanned');
  const { id, diff } = await repairIn(fixture, 'A-1', []);
  await holdRepairs(store.db, [diff], decision);
  const { source, downstream, context, pair } = fixture;
  source.records.splice(0, 1, record('A-1', { amount: '11' }));
  const signal = new AbortController().signal;
  const verdict = (await lookBoth([['A-1']], source, downstream, context, signal)).get('["A-1"]');
  if (verdict?.verdict !== 'differs') throw new Error('the sides must differ');
  const { finding } = verdict;
  await store.db.transaction(async (trx) => {
    const input = { pair, now: await storeClock(trx), runId: null, configRevision: null };
    await planDiff(trx, { id: diff, traceId: 'b'.repeat(32), finding }, input);
  });
  expect((await fixture.row(id)).state).toBe('superseded');
  const [next] = await store
    .db('compensation')
    .where({ diff_id: diff })
    .whereNull('ended_at')
    .select('state');
  expect(next).toEqual({ state: 'held' });
});
