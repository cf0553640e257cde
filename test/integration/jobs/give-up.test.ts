import { expect, test } from 'vitest';
import type { Outcome } from '../../../src/compensate/action.ts';
import { giveUpWaiting } from '../../../src/jobs/give-up.ts';
import { runCompensation } from '../../../src/jobs/run-compensation.ts';
import type { Db } from '../../../src/store/database.ts';
import { promotePlanned } from '../../../src/store/dispatchable.ts';
import { forgetOutages, gateOutage, holdGate, releaseGate } from '../../../src/store/gates.ts';
import { noteOutcome } from '../../../src/store/note-outcome.ts';
import { type RepairFixture, repairFixture } from '../../support/repair-fixture.ts';
import { storeForFile } from '../store/store.ts';

const store = storeForFile();
const HOUR = 3_600_000;
const hoursAgo = (db: Db, hours: number) => db.raw(`clock_timestamp() - ${hours} * interval '1 hour'`);

function outcome(code: string, outcomeClass: Outcome['class']): Outcome {
  const nothing = { request: null, answer: null, error: null, retryAfterMs: null };
  return { class: outcomeClass, code, unclassified: false, durationMs: 1, ...nothing };
}
const DOWN = outcome('http-503', 'target-down');

async function answered(fixture: RepairFixture, what: Outcome): Promise<void> {
  const { target, pair } = fixture;
  await store.db.transaction((trx) => noteOutcome(trx, { gate: pair.name, target, outcome: what }));
}

/** The target failed so many hours ago for the first time, and just now again. */
async function downFor(fixture: RepairFixture, hours: number): Promise<void> {
  await answered(fixture, DOWN);
  const { outage } = await store.db('gate').where({ gate: fixture.pair.name }).first('outage');
  const earlier = { ...outage, sinceMs: outage.sinceMs - hours * HOUR };
  await store
    .db('gate')
    .where({ gate: fixture.pair.name })
    .update({ outage: JSON.stringify(earlier) });
}

/** A repair that waits in this state, planned so many hours ago. */
async function waiting(fixture: RepairFixture, no: string, state: string, hours: number): Promise<string> {
  const id = await fixture.plan(no);
  const { db } = store;
  for (const next of {
    ready: ['ready'],
    retrying: ['ready', 'queued', 'sending', 'retrying'],
    deferred: ['ready', 'queued', 'deferred'],
  }[state] ?? [])
    await db('compensation')
      .where({ id })
      .update({ state: next, waiting_since: hoursAgo(db, hours) });
  return id;
}

const giveUp = (fixture: RepairFixture) =>
  giveUpWaiting(fixture.deps, { [fixture.pair.name]: fixture.target });
const statesOf = (fixture: RepairFixture, ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await fixture.row(id)).state));

test('a target down for giveUpAfter gives up all that waited as long, tried or not, and nothing younger', async () => {
  const fixture = repairFixture(store.db, 'down-long');
  const old = [
    await waiting(fixture, 'A-1', 'ready', 25),
    await waiting(fixture, 'A-2', 'retrying', 25),
    await waiting(fixture, 'A-3', 'deferred', 25),
  ];
  const young = [await waiting(fixture, 'A-4', 'ready', 1), await waiting(fixture, 'A-5', 'deferred', 1)];
  await downFor(fixture, 25);
  expect(await giveUp(fixture)).toBe(3);
  expect(await statesOf(fixture, old)).toEqual(['escalated', 'escalated', 'escalated']);
  expect(await statesOf(fixture, young)).toEqual(['ready', 'deferred']);
  expect((await fixture.row(old[0] ?? '')).escalation).toBe('gave-up');
  expect(fixture.ended).toHaveLength(3);
});

test('nothing is given up while the target is down for less, or answered in between', async () => {
  const fixture = repairFixture(store.db, 'down-short');
  const ids = [await waiting(fixture, 'A-1', 'ready', 30)];
  await downFor(fixture, 23);
  expect(await giveUp(fixture)).toBe(0);
  await downFor(fixture, 24);
  await answered(fixture, outcome('http-404', 'fatal'));
  await answered(fixture, DOWN);
  expect(await giveUp(fixture)).toBe(0);
  expect(await statesOf(fixture, ids)).toEqual(['ready']);
});

test('one failure after a long time without a call proves nothing', async () => {
  const fixture = repairFixture(store.db, 'down-idle');
  await waiting(fixture, 'A-1', 'ready', 30);
  await downFor(fixture, 0);
  const { outage } = await store.db('gate').where({ gate: 'down-idle' }).first('outage');
  const old = { ...outage, sinceMs: outage.sinceMs - 30 * HOUR, seenMs: outage.seenMs - 30 * HOUR };
  await store
    .db('gate')
    .where({ gate: 'down-idle' })
    .update({ outage: JSON.stringify(old) });
  expect(await giveUp(fixture)).toBe(0);
});

test('a hold does not count: neither while it lasts nor after it', async () => {
  const fixture = repairFixture(store.db, 'down-held');
  const { db } = store;
  const id = await waiting(fixture, 'A-1', 'deferred', 60);
  await downFor(fixture, 40);
  await holdGate(db, 'down-held', 'asked to', 'ann');
  expect(await giveUp(fixture)).toBe(0);
  await db('gate')
    .where({ gate: 'down-held' })
    .update({ held_at: hoursAgo(db, 30) });
  // A second hold says another reason and not another beginning.
  await holdGate(db, 'down-held', 'asked again', 'ann');
  expect(await releaseGate(db, 'down-held')).toBe(true);
  expect(await releaseGate(db, 'down-held')).toBe(false);
  await answered(fixture, DOWN);
  expect(await giveUp(fixture)).toBe(0);
  await downFor(fixture, 15);
  expect(await giveUp(fixture)).toBe(1);
  expect((await fixture.row(id)).state).toBe('escalated');
});

test('a failure after a long hold defers the compensation and calls nobody', async () => {
  const fixture = repairFixture(store.db, 'failure-after-hold', { target: { retry: { attempts: 1 } } });
  const id = await fixture.queue('A-1');
  await store
    .db('compensation')
    .where({ id })
    .update({ target_down_since: hoursAgo(store.db, 30) });
  fixture.sender.answer = DOWN;
  await runCompensation(fixture.deps, { id, ring: 1 });
  expect((await fixture.row(id)).state).toBe('deferred');
});

test('a hold of all replay ends every outage, since nobody knows when it began', async () => {
  const fixture = repairFixture(store.db, 'replay-held');
  await waiting(fixture, 'A-1', 'ready', 40);
  await downFor(fixture, 40);
  await store.db('meta').update({ replay_held: 'restored' });
  expect(await giveUp(fixture)).toBe(0);
  await store.db('meta').update({ replay_held: null });
  await forgetOutages(store.db);
  await answered(fixture, DOWN);
  expect(await giveUp(fixture)).toBe(0);
  const outage = await gateOutage(store.db, 'replay-held', 24 * HOUR);
  expect(outage).toMatchObject({ held: false, givenUpSinceMs: null, releasedMsAgo: expect.any(Number) });
});

test('a repair begins to wait for its gate when its turn comes', async () => {
  const fixture = repairFixture(store.db, 'turn-comes');
  const id = await fixture.plan('A-1');
  await store
    .db('compensation')
    .where({ id })
    .update({ created_at: hoursAgo(store.db, 30) });
  await promotePlanned(store.db, 10_000);
  await downFor(fixture, 30);
  expect(await giveUp(fixture)).toBe(0);
  expect((await fixture.row(id)).state).toBe('ready');
});

test('an outcome is weighed at the lesser of this process’s watermark and the active one', async () => {
  const { db } = store;
  const { target } = repairFixture(db, 'lesser', { target: { watermark: 100 } });
  await db('gate').insert({ gate: 'lesser', purpose: 'send', ceiling: 50 });
  const facts = await db.transaction((trx) => noteOutcome(trx, { gate: 'lesser', target, outcome: DOWN }));
  expect(facts).toEqual({ breaker: 'closed', limit: 50, why: 'ceiling' });
});
