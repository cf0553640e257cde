import { expect, test } from 'vitest';
import { runCompensation, settleDue } from '../../../src/jobs/run-compensation.ts';
import type { Db } from '../../../src/store/database.ts';
import { record } from '../../support/records.ts';
import { type RepairFixture, repairFixture } from '../../support/repair-fixture.ts';
import { storeForFile } from '../store/store.ts';

const store = storeForFile();
const signal = new AbortController().signal;
const hoursAgo = (db: Db, hours: number) => db.raw(`clock_timestamp() - ${hours} * interval '1 hour'`);

async function settleNow(fixture: RepairFixture, id: string): Promise<void> {
  await store.db('compensation').where({ id }).update({ due_at: store.db.fn.now() });
  expect(await settleDue(fixture.deps, fixture.pair, fixture.context, signal)).toBe(1);
}

async function sent(fixture: RepairFixture, answer: 'accepted' | 'unknown'): Promise<string> {
  fixture.sender.answer = { class: answer, code: answer };
  const id = await fixture.queue('A-1');
  await runCompensation(fixture.deps, { id, ring: 1 });
  expect((await fixture.row(id)).state).toBe(answer === 'accepted' ? 'applied' : 'unknown');
  return id;
}

test('looks after a send that fail start one clock, and one that decides stops it', async () => {
  const fixture = repairFixture(store.db, 'settle-clock');
  const id = await sent(fixture, 'accepted');
  fixture.downstream.unreadable = true;
  await settleNow(fixture, id);
  const { undecided_since } = await fixture.row(id);
  expect(undecided_since).not.toBeNull();
  await settleNow(fixture, id);
  expect((await fixture.row(id)).undecided_since).toEqual(undecided_since);
  fixture.downstream.unreadable = false;
  await settleNow(fixture, id);
  expect(await fixture.row(id)).toMatchObject({ state: 'applied', undecided_since: null });
});

test('an unknown send that nobody can look at for giveUpAfter goes to a person and stays unknown', async () => {
  const fixture = repairFixture(store.db, 'settle-unknown');
  const id = await sent(fixture, 'unknown');
  fixture.source.unreadable = true;
  await store
    .db('compensation')
    .where({ id })
    .update({ undecided_since: hoursAgo(store.db, 23.9) });
  await settleNow(fixture, id);
  expect((await fixture.row(id)).state).toBe('unknown');
  await store
    .db('compensation')
    .where({ id })
    .update({ undecided_since: hoursAgo(store.db, 24) });
  await settleNow(fixture, id);
  expect(await fixture.row(id)).toMatchObject({
    state: 'escalated',
    escalation: 'unreadable',
    escalation_detail: expect.stringContaining('nobody answers'),
    last_unknown: true,
  });
});

test('a record that stays undecided after its send goes to a person with the reason', async () => {
  const fixture = repairFixture(store.db, 'settle-undecided');
  const id = await sent(fixture, 'accepted');
  const odd = { type: 'undecided', text: '?', reason: 'the local time is ambiguous' } as const;
  fixture.downstream.records.push(record('A-1', { amount: odd }));
  await store
    .db('compensation')
    .where({ id })
    .update({ undecided_since: hoursAgo(store.db, 24) });
  await settleNow(fixture, id);
  expect(await fixture.row(id)).toMatchObject({
    escalation: 'unreadable',
    escalation_detail: expect.stringContaining('the local time is ambiguous'),
  });
});

test('what is accepted and not taken gets one more round and not two, whatever its words say', async () => {
  const fixture = repairFixture(store.db, 'one-more-round', { onNotTaken: 'resend' });
  const first = await sent(fixture, 'accepted');
  await store
    .db('compensation')
    .where({ id: first })
    .update({ last_sent_at: hoursAgo(store.db, 1) });
  await settleNow(fixture, first);
  expect(await fixture.row(first)).toMatchObject({ state: 'superseded', not_taken: true });
  // The words are for people; a release may write them anew.
  await store.db('compensation').where({ id: first }).update({ escalation_detail: 'reworded' });
  const { id: second } = await store
    .db('compensation')
    .where({ target: 'one-more-round', revision: 1 })
    .first('id');
  await store.db('compensation').where({ id: second }).update({ state: 'ready' });
  await store.db('compensation').where({ id: second }).update({ state: 'queued', ring: 1 });
  await runCompensation(fixture.deps, { id: second, ring: 1 });
  await store
    .db('compensation')
    .where({ id: second })
    .update({ last_sent_at: hoursAgo(store.db, 1) });
  await settleNow(fixture, second);
  expect(await fixture.row(second)).toMatchObject({ state: 'escalated', escalation: 'not-taken' });
  expect(fixture.sender.sent).toHaveLength(2);
});

test('equal sides verify a send, and a repeat that is allowed begins to wait for its gate', async () => {
  const fixture = repairFixture(store.db, 'settle-seen', { target: { idempotency: { dedupes: true } } });
  const id = await sent(fixture, 'unknown');
  await store
    .db('compensation')
    .where({ id })
    .update({ last_sent_at: store.db.raw(`clock_timestamp() - interval '2 seconds'`) });
  await settleNow(fixture, id);
  const resent = await fixture.row(id);
  expect(resent).toMatchObject({ state: 'ready', last_unknown: true });
  expect(resent.waiting_since).not.toBeNull();
  await store.db('compensation').where({ id }).update({ state: 'queued', ring: 2 });
  await runCompensation(fixture.deps, { id, ring: 2 });
  fixture.downstream.records.push(record('A-1', { amount: '10' }));
  await settleNow(fixture, id);
  expect(await fixture.row(id)).toMatchObject({ state: 'verified', last_unknown: false });
});
