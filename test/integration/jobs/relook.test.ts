import { describe, expect, test } from 'vitest';
import { RELOOK_BATCH, relookDiffs } from '../../../src/jobs/relook.ts';
import { SideError } from '../../../src/reconcile/side.ts';
import { type RunFixture, row, rows, runFixture } from '../../support/run-fixture.ts';
import { insertCompensation } from '../store/rows.ts';
import { storeForFile } from '../store/store.ts';

const store = storeForFile();
const HOUR_S = 3600;

const relook = (fixture: RunFixture) =>
  relookDiffs(store.db, fixture.pair, fixture.deps.look, new AbortController().signal);

/** As if an hour had passed. */
const due = (fixture: RunFixture) =>
  store
    .db('diff')
    .where({ reconciliation: fixture.name })
    .update({ next_look: store.db.raw('clock_timestamp()') });

/** Seconds until each diff's next look. */
async function nextLooks(fixture: RunFixture): Promise<number[]> {
  const { rows: found } = await store.db.raw<{ rows: { seconds: number }[] }>(
    `select extract(epoch from next_look - clock_timestamp())::float8 as seconds
       from diff where reconciliation = ? order by id`,
    [fixture.name],
  );
  return found.map(({ seconds }) => seconds);
}

/** One diff of `a`, due for its look. */
async function diffOf(name: string, kind: 'missing' | 'extra'): Promise<{ fixture: RunFixture; id: string }> {
  const fixture = runFixture(store.db, name);
  (kind === 'missing' ? fixture.source : fixture.downstream).records.push(row('a'));
  await fixture.run();
  await due(fixture);
  const { id, kind: found } = await store.db('diff').where({ reconciliation: name }).first('id', 'kind');
  expect(found).toBe(kind);
  return { fixture, id };
}

const events = (id: string): Promise<string[]> =>
  store.db('diff_event').where({ diff_id: id }).orderBy('id').pluck('event');

describe.each(['missing', 'extra'] as const)('a diff of kind %s', (kind) => {
  test('closes by itself when the sides agree, whatever the window', async () => {
    const { fixture, id } = await diffOf(`healed-${kind}`, kind);
    // Done by hand, or undone: both end it.
    if (kind === 'missing') fixture.downstream.records.push(row('a'));
    else fixture.downstream.records.splice(0);
    expect(await relook(fixture)).toBe(1);
    expect(await fixture.diffs()).toEqual({ a: ['healed'] });
    expect(await store.db('diff').where({ id }).first('closed_by', 'close_reason')).toEqual({
      closed_by: 'trueup',
      close_reason: 'a later look found the sides equal',
    });
    expect((await events(id)).at(-1)).toBe('healed');
    expect(await relook(fixture)).toBe(0);
  });

  test('stays open while the sides differ, and is looked at again after `relook`', async () => {
    const { fixture, id } = await diffOf(`differs-${kind}`, kind);
    expect(await relook(fixture)).toBe(1);
    expect(await fixture.diffs()).toEqual({ a: ['open'] });
    const [next] = await nextLooks(fixture);
    expect(next).toBeGreaterThan(HOUR_S - 60);
    expect(next).toBeLessThanOrEqual(HOUR_S);
    // Not before that.
    expect(await relook(fixture)).toBe(0);
    expect(await events(id)).toEqual(['opened']);
  });

  test('is left alone by a side that cannot be read, and looked at again in a minute', async () => {
    const { fixture, id } = await diffOf(`unreadable-${kind}`, kind);
    fixture.downstream.records.splice(0);
    fixture.source.records.splice(0);
    const lost = new SideError('TRU_SIDE_UNREACHABLE', 'source', 'gone', { transient: true });
    fixture.source.lookup = () => Promise.reject(lost);
    await expect(relook(fixture)).rejects.toBe(lost);
    expect(await fixture.diffs()).toEqual({ a: ['open'] });
    expect(await events(id)).toEqual(['opened']);
    const [next] = await nextLooks(fixture);
    expect(next).toBeGreaterThan(0);
    expect(next).toBeLessThanOrEqual(60);
  });
});

test('a diff that a person was handed closes too, and one that was marked as failed', async () => {
  const fixture = runFixture(store.db, 'handed');
  fixture.source.records.push(row('a'), row('b'));
  await fixture.run();
  const [a, b] = await store.db('diff').where({ reconciliation: 'handed' }).orderBy('id').pluck('id');
  const compensation = await insertCompensation(store.db, 'handed', a, {
    state: 'escalated',
    escalation: 'unresolved',
    last_unknown: true,
    ended_at: store.db.raw('clock_timestamp()'),
    business_key: '["a"]',
  });
  await store.db('diff').where({ id: b }).update({ state: 'failed' });
  await due(fixture);
  fixture.downstream.records.push(row('a'), row('b'));
  expect(await relook(fixture)).toBe(2);
  expect(await fixture.diffs()).toEqual({ a: ['healed'], b: ['healed'] });
  // What was unknown is known now: nothing waits behind it any more (rule 6.6).
  expect(await store.db('compensation').where({ id: compensation }).first('last_unknown', 'state')).toEqual({
    last_unknown: false,
    state: 'escalated',
  });
});

test('a repair that was not sent ends with the diff; one that is on its way is left to its own looks', async () => {
  const fixture = runFixture(store.db, 'repairs');
  fixture.source.records.push(row('a'), row('b'));
  await fixture.run({ mode: 'compensate' });
  const ours = (key: string) =>
    store.db('compensation').where({ reconciliation: 'repairs', business_key: `["${key}"]` });
  for (const state of ['ready', 'queued', 'sending', 'applied']) await ours('b').update({ state });
  await due(fixture);
  fixture.downstream.records.push(row('a'), row('b'));
  await relook(fixture);
  expect(await fixture.diffs()).toEqual({ a: ['healed'], b: ['open'] });
  expect([await ours('a').pluck('state'), await ours('b').pluck('state')]).toEqual([['healed'], ['applied']]);
});

test('a round looks at so many, those that waited longest first, in one read of each side', async () => {
  const fixture = runFixture(store.db, 'batch');
  fixture.source.records.push(...rows('n', RELOOK_BATCH + 3));
  await fixture.run();
  await due(fixture);
  const [oldest] = rows('n', 1);
  await store
    .db('diff')
    .where({ reconciliation: 'batch', business_key: JSON.stringify(oldest?.key) })
    .update({ next_look: store.db.raw(`clock_timestamp() - interval '1 minute'`) });
  fixture.downstream.records.push(...fixture.source.records);
  let reads = 0;
  const lookup = fixture.downstream.lookup.bind(fixture.downstream);
  fixture.downstream.lookup = (keys, signal) => {
    reads += 1;
    return lookup(keys, signal);
  };
  expect(await relook(fixture)).toBe(RELOOK_BATCH);
  expect(reads).toBe(1);
  expect((await fixture.diffs())[oldest?.key[0] ?? '']).toEqual(['healed']);
  expect(await relook(fixture)).toBe(3);
  expect(await relook(fixture)).toBe(0);
});

test('of two workers at once each diff is looked at by one', async () => {
  const fixture = runFixture(store.db, 'two');
  fixture.source.records.push(...rows('n', 20));
  await fixture.run();
  await due(fixture);
  const looked = await Promise.all([relook(fixture), relook(fixture)]);
  expect(looked.reduce((sum, n) => sum + n, 0)).toBe(20);
});
