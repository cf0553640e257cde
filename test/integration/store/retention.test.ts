import { beforeEach, describe, expect, test } from 'vitest';
import { configSchema } from '../../../src/config/schema.ts';
import { agesOf, retain } from '../../../src/jobs/retention.ts';
import { deleteExpired } from '../../../src/store/retention.ts';
import { insertAttempt, insertCompensation, insertDiff, insertRun, insertSuspect } from './rows.ts';
import { storeForFile } from './store.ts';

const store = storeForFile();
const HOUR = { runsMs: 3_600_000, diffsMs: 3_600_000 };
const OLD = '2020-01-01T00:00:00Z';

const expire = (limit = 100) => deleteExpired(store.db, HOUR, limit, IDLE);
const IDLE = new AbortController().signal;
const ids = (table: string) => store.db(table).orderBy('id').pluck('id');

beforeEach(async () => {
  await store.db.raw('truncate run, diff, slot, alert, upkeep cascade');
});

/** As if the hour until the next upkeep had passed. */
async function passTime(): Promise<void> {
  await store.db('upkeep').update({ next_at: OLD });
}

function closed(key: number, values: Record<string, unknown> = {}) {
  return insertDiff(store.db, 'orders', {
    business_key: `["K-${key}"]`,
    state: 'verified',
    closed_at: OLD,
    source_record: '{"key": ["K"]}',
    ...values,
  });
}

describe('diffs', () => {
  test('that closed long ago go, with all that belongs to them', async () => {
    const diff = await closed(1);
    const ended = { state: 'verified', ended_at: OLD };
    const compensation = await insertCompensation(store.db, 'orders', diff, ended);
    await insertAttempt(store.db, compensation, 1);
    await store.db('diff_event').insert({ diff_id: diff, event: 'opened' });
    const fresh = await closed(2, { closed_at: store.db.raw('now()') });
    expect(await expire()).toMatchObject({ diffs: 1 });
    expect(await ids('diff')).toEqual([fresh]);
    for (const table of ['compensation', 'attempt', 'diff_event']) expect(await store.db(table)).toEqual([]);
  });

  test('that are open or failed stay, however old', async () => {
    const open = await closed(1, { state: 'open', closed_at: null, first_seen: OLD, last_seen: OLD });
    const failed = await closed(2, { state: 'failed', closed_at: null, first_seen: OLD, last_seen: OLD });
    expect(await expire()).toMatchObject({ diffs: 0, emptied: 0 });
    expect(await ids('diff')).toEqual([open, failed]);
  });

  test.each([
    ['planned', {}],
    ['held', {}],
    ['sending', {}],
    ['unknown', {}],
    ['applied', {}],
    ['escalated', { escalation: 'unresolved', last_unknown: true, ended_at: OLD }],
  ])('with a compensation that is %s stay', async (state, values) => {
    const diff = await closed(1, { state: 'resolved' });
    await insertCompensation(store.db, 'orders', diff, { state, ...values });
    expect(await expire()).toMatchObject({ diffs: 0, emptied: 0 });
    expect(await ids('diff')).toEqual([diff]);
    expect(await ids('compensation')).toHaveLength(1);
  });

  test('whose decision stands keep key and digests and lose their records', async () => {
    const diff = await closed(1, { state: 'dismissed', source_digest: 'd1' });
    const lapsed = await closed(2, { state: 'dismissed', dismissed_until: OLD });
    await insertCompensation(store.db, 'orders', diff, { state: 'cancelled', ended_at: OLD });
    expect(await expire()).toMatchObject({ diffs: 1, emptied: 1 });
    const rows = await store.db('diff').select('id', 'source_digest', 'source_record', 'business_key');
    expect(rows).toEqual([{ id: diff, source_digest: 'd1', source_record: null, business_key: '["K-1"]' }]);
    expect(rows.map(({ id }) => id)).not.toContain(lapsed);
    expect(await store.db('compensation')).toEqual([]);
    expect(await expire()).toMatchObject({ diffs: 0, emptied: 0 });
  });

  test('of a key that is open again stay, since their compensations say what was sent for it', async () => {
    const before = await closed(1);
    const elsewhere = await insertDiff(store.db, 'refunds', {
      business_key: '["K-1"]',
      state: 'verified',
      closed_at: OLD,
    });
    const open = await insertDiff(store.db, 'orders', { business_key: '["K-1"]' });
    expect(await expire()).toMatchObject({ diffs: 1 });
    expect(await ids('diff')).toEqual([before, open]);
    expect(await ids('diff')).not.toContain(elsewhere);
  });

  test('go in batches of the given size, oldest first', async () => {
    const all = [await closed(1), await closed(2), await closed(3)];
    expect(await expire(2)).toMatchObject({ diffs: 2 });
    expect(await ids('diff')).toEqual(all.slice(2));
    expect(await expire(2)).toMatchObject({ diffs: 1 });
  });
});

describe('the upkeep', () => {
  test('deletes batch by batch until nothing is left, and then not again for an hour', async () => {
    for (let key = 0; key < 7; key++) await closed(key);
    expect(await retain(store.db, HOUR, IDLE, 2)).toMatchObject({ diffs: 7 });
    await closed(9);
    expect(await retain(store.db, HOUR, IDLE, 2)).toBeNull();
    await passTime();
    expect(await retain(store.db, HOUR, IDLE, 2)).toMatchObject({ diffs: 1 });
  });

  test('is done by one process at a time', async () => {
    for (let key = 0; key < 7; key++) await closed(key);
    const both = await Promise.all([retain(store.db, HOUR, IDLE, 2), retain(store.db, HOUR, IDLE, 2)]);
    expect(both.filter((sum) => sum === null)).toHaveLength(1);
    expect(await ids('diff')).toEqual([]);
  });

  test('ends after the statement in hand when it is aborted, and the next one goes on at once', async () => {
    for (let key = 0; key < 7; key++) await closed(key);
    const done = { phase: 'done', result: 'complete', ended_at: OLD };
    for (let n = 0; n < 3; n++) await insertRun(store.db, 'orders', done);
    const drain = new AbortController();
    const statements: string[] = [];
    const onQuery = ({ sql }: { sql: string }) => {
      if (!sql.startsWith('delete from diff')) return;
      statements.push(sql);
      if (statements.length === 2) drain.abort();
    };
    store.db.on('query', onQuery);
    expect(await retain(store.db, HOUR, drain.signal, 2)).toMatchObject({ diffs: 4, runs: 2 });
    store.db.removeListener('query', onQuery);
    expect(await ids('diff')).toHaveLength(3);
    expect(await retain(store.db, HOUR, IDLE, 2)).toMatchObject({ diffs: 3, runs: 1 });
  });

  test('keeps the ledger for as long as a target may be asked for a key again, whatever retention says', () => {
    const config = configSchema.parse({
      version: 1,
      reconciliations: {},
      retention: { diffs: '1h', runs: '2h' },
      targets: { gateway: { giveUpAfter: '12h', idempotency: { keyRetention: '36h' } }, other: {} },
    });
    expect(agesOf(config)).toEqual({ runsMs: 2 * 3_600_000, diffsMs: 48 * 3_600_000 });
  });
});

describe('runs', () => {
  const done = { phase: 'done', result: 'complete', ended_at: OLD };

  test('that ended long ago go with their settled suspects', async () => {
    const run = await insertRun(store.db, 'orders', done);
    await insertSuspect(store.db, 'orders', run, { state: 'healed' });
    const fresh = await insertRun(store.db, 'orders', { ...done, ended_at: store.db.raw('now()') });
    expect(await expire()).toMatchObject({ runs: 1 });
    expect(await ids('run')).toEqual([fresh]);
    expect(await store.db('suspect')).toEqual([]);
  });

  test('that something open belongs to stay', async () => {
    const unfinished = await insertRun(store.db, 'orders', { created_at: OLD });
    const withDiff = await insertRun(store.db, 'orders', done);
    await insertDiff(store.db, 'orders', { run_id: withDiff });
    const withCompensation = await insertRun(store.db, 'orders', done);
    const diff = await insertDiff(store.db, 'orders', { business_key: '["A-2"]' });
    await insertCompensation(store.db, 'orders', diff, { run_id: withCompensation });
    const withSuspect = await insertRun(store.db, 'orders', done);
    await insertSuspect(store.db, 'orders', withSuspect, { state: 'undecided' });
    expect(await expire()).toMatchObject({ runs: 0 });
    expect(await ids('run')).toEqual([unfinished, withDiff, withCompensation, withSuspect]);
  });
});

test('the latest slot of each schedule stays, so that no slot is run again', async () => {
  const slot = { occurrence: 1, outcome: 'skipped' };
  await store.db('slot').insert([
    { ...slot, reconciliation: 'a', local_time: '1', nominal: '2020-01-01T00:00:00Z' },
    { ...slot, reconciliation: 'a', local_time: '2', nominal: '2020-01-02T00:00:00Z' },
    { ...slot, reconciliation: 'b', local_time: '1', nominal: '2019-01-01T00:00:00Z' },
  ]);
  expect(await expire()).toMatchObject({ slots: 1 });
  const left = await store.db('slot').orderBy('reconciliation').select('reconciliation', 'local_time');
  expect(left).toEqual([
    { reconciliation: 'a', local_time: '2' },
    { reconciliation: 'b', local_time: '1' },
  ]);
});

test('recovered alerts go, open ones and those with a message to deliver stay', async () => {
  const alert = { kind: 'diffs', severity: 'warning', summary: '{}' };
  const recovered = { ...alert, state: 'recovered', recovered_at: OLD };
  const insert = async (values: Record<string, unknown>) =>
    (await store.db('alert').insert(values).returning('id'))[0].id;
  await insert({ ...recovered, reconciliation: 'gone' });
  const open = await insert({ ...alert, reconciliation: 'open', opened_at: OLD });
  const waiting = await insert({ ...recovered, reconciliation: 'waiting' });
  await store.db('alert_message').insert({ alert_id: waiting, channel: 'chat', message: '{}' });
  expect(await expire()).toMatchObject({ alerts: 1 });
  expect(await ids('alert')).toEqual([open, waiting]);
});
