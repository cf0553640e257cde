import { describe, expect, test } from 'vitest';
import { replayDiffs } from '../../../src/jobs/replay.ts';
import { addMillis, instantFromMillis } from '../../../src/reconcile/instant.ts';
import { SideError } from '../../../src/reconcile/side.ts';
import { type RunFixture, row, rows, runFixture } from '../../support/run-fixture.ts';
import { storeForFile } from '../store/store.ts';

const store = storeForFile();
const DAY = 86_400_000;
const decision = { actor: { name: 'ann', origin: 'test' }, reason: 'the gateway is back' };

function depsOf(...fixtures: readonly RunFixture[]) {
  return {
    db: store.db,
    pairs: new Map(fixtures.map((fixture) => [fixture.name, fixture.pair])),
    look: () => ({ rules: fixtures[0]?.pair.config.compare ?? {}, digestKey: 'k' }),
    configRevision: null,
  };
}

/** So many open diffs, found by a run that only checked. */
async function found(name: string, count: number): Promise<{ fixture: RunFixture; ids: string[] }> {
  const fixture = runFixture(store.db, name);
  fixture.source.records.push(...rows('n', count));
  await fixture.run();
  return { fixture, ids: await store.db('diff').where({ reconciliation: name }).orderBy('id').pluck('id') };
}

const plannedOf = async (name: string) =>
  Number((await store.db('compensation').where({ reconciliation: name }).count('* as n').first())?.['n']);

describe('a replay of many diffs', () => {
  test('looks at a hundred of them and plans these before it looks at the next', async () => {
    const { fixture, ids } = await found('groups', 250);
    const lookup = fixture.source.lookup.bind(fixture.source);
    const looks: { keys: number; plannedBefore: number }[] = [];
    fixture.source.lookup = async (keys, signal) => {
      looks.push({ keys: keys.length, plannedBefore: await plannedOf('groups') });
      return lookup(keys, signal);
    };
    const progress: number[] = [];
    const outcomes = await replayDiffs(depsOf(fixture), ids, decision, (done) => progress.push(done));
    expect(outcomes.map(({ id }) => id)).toEqual(ids);
    expect(outcomes.filter(({ done }) => done)).toHaveLength(250);
    expect(looks).toEqual([
      { keys: 100, plannedBefore: 0 },
      { keys: 100, plannedBefore: 100 },
      { keys: 50, plannedBefore: 200 },
    ]);
    expect(progress).toEqual([100, 200, 250]);
  });

  test('that dies half-way has done what it did, and the next one does the rest', async () => {
    const { fixture, ids } = await found('half', 150);
    const dies = (done: number) => {
      if (done === 100) throw new Error('the process was killed');
    };
    await expect(replayDiffs(depsOf(fixture), ids, decision, dies)).rejects.toThrow('killed');
    expect(await plannedOf('half')).toBe(100);
    expect(
      await store
        .db('audit')
        .where({ action: 'diff.replay' })
        .whereIn(
          'subject',
          ids.map((id) => `diff ${id}`),
        ),
    ).toHaveLength(100);
    const outcomes = await replayDiffs(depsOf(fixture), ids, decision);
    const again = { done: false, why: 'this repair is planned already' };
    expect(outcomes.slice(0, 100)).toEqual(ids.slice(0, 100).map((id) => ({ id, ...again })));
    expect(outcomes.filter(({ done }) => done)).toHaveLength(50);
    expect(await plannedOf('half')).toBe(150);
  });

  test('says of each what became of it when a side cannot be read any more', async () => {
    const { fixture, ids } = await found('lost', 250);
    const other = await found('reached', 1);
    const lookup = fixture.downstream.lookup.bind(fixture.downstream);
    let reads = 0;
    fixture.downstream.lookup = (keys, signal) => {
      reads += 1;
      const lost = new SideError('TRU_SIDE_UNREACHABLE', 'downstream', 'gone', { transient: true });
      return reads === 1 ? lookup(keys, signal) : Promise.reject(lost);
    };
    const outcomes = await replayDiffs(depsOf(fixture, other.fixture), [...ids, ...other.ids], decision);
    expect(outcomes.slice(0, 100).every(({ done }) => done)).toBe(true);
    expect(outcomes.slice(100, 250)).toEqual(
      ids.slice(100).map((id) => ({ id, done: false, why: 'not looked at: downstream: gone' })),
    );
    // It is not asked for each group again, and another reconciliation is none of its business.
    expect(reads).toBe(2);
    expect(outcomes.at(-1)).toMatchObject({ id: other.ids[0], done: true });
  });

  test('leaves a diff alone that somebody closed since its group was read', async () => {
    const { fixture, ids } = await found('closed', 2);
    const lookup = fixture.source.lookup.bind(fixture.source);
    fixture.source.lookup = async (keys, signal) => {
      await store.db('diff').where({ id: ids[0] }).update({ state: 'resolved', closed_at: new Date() });
      return lookup(keys, signal);
    };
    const outcomes = await replayDiffs(depsOf(fixture), ids, decision);
    expect(outcomes).toMatchObject([
      { id: ids[0], done: false, why: 'there is no open diff with this id' },
      { id: ids[1], done: true },
    ]);
  });

  test('says which ids are none, and which reconciliation the configuration no longer has', async () => {
    const { ids } = await found('removed', 1);
    const outcomes = await replayDiffs(depsOf(), [...ids, '999999999'], decision);
    expect(outcomes.map((outcome) => (outcome.done ? outcome.what : outcome.why))).toEqual([
      'there is no open diff with this id',
      'the configuration has no reconciliation removed',
    ]);
  });
});

test('a record older than maxAge is reported by runs, and repaired when a person replays it (rule 5.12)', async () => {
  const fixture = runFixture(store.db, 'old', { maxAge: '7d' });
  const now = instantFromMillis(Date.now());
  const window = { from: addMillis(now, -9 * DAY), to: now };
  fixture.source.records.push(
    row('old', 'PAID', addMillis(now, -8 * DAY)),
    row('young', 'PAID', addMillis(now, -6 * DAY)),
  );
  expect(await fixture.run({ mode: 'compensate', window })).toMatchObject({
    counts: { missing: 2 },
    compensations: { planned: 1 },
  });
  const { id } = await store.db('diff').where({ reconciliation: 'old', business_key: '["old"]' }).first('id');
  const told = await store.db('diff_event').where({ diff_id: id, event: 'not-planned' }).first('detail');
  expect(told.detail.why).toMatch(/older than maxAge/);
  // The next run does not do it by itself either.
  await fixture.run({ mode: 'compensate', window });
  expect(await plannedOf('old')).toBe(1);
  expect(await replayDiffs(depsOf(fixture), [id], decision)).toEqual([{ id, done: true, what: 'planned' }]);
});

test('what is extra or doubled is reported, and not repaired unless the configuration says so', async () => {
  const fixture = runFixture(store.db, 'reported');
  fixture.downstream.records.push(row('x'), row('d'), row('d'));
  fixture.source.records.push(row('d'));
  expect(await fixture.run({ mode: 'compensate' })).toMatchObject({
    counts: { extra: 1, duplicate: 1 },
    compensations: { planned: 0 },
  });
  const ids: string[] = await store.db('diff').where({ reconciliation: 'reported' }).pluck('id');
  expect(ids).toHaveLength(2);
  for (const outcome of await replayDiffs(depsOf(fixture), ids, decision))
    expect(outcome).toMatchObject({ done: false, why: expect.stringMatching(/only reported/) });
});
