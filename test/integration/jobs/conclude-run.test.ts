import { describe, expect, test } from 'vitest';
import { closeDiffs, failDiffs } from '../../../src/jobs/operator.ts';
import { listDiffs } from '../../../src/store/list-diffs.ts';
import { guardPatterns } from '../../../src/store/run-holds.ts';
import { type RunFixture, row, rows, runFixture } from '../../support/run-fixture.ts';
import { storeForFile } from '../store/store.ts';

const store = storeForFile();
const decision = { actor: { name: 'ann', origin: 'test' }, reason: 'test orders' };

async function dismiss(fixture: RunFixture, ...keys: readonly string[]): Promise<void> {
  const open = await listDiffs(store.db, { reconciliation: fixture.name, states: ['open'] }, { limit: 100 });
  const ids = open.filter(({ key }) => keys.includes(key[0] ?? '')).map(({ id }) => id);
  const outcomes = await closeDiffs(store.db, ids, { state: 'dismissed' }, decision);
  expect(outcomes.filter(({ done }) => done)).toHaveLength(keys.length);
}

describe('the guard', () => {
  test('does not count what a person has decided on', async () => {
    const fixture = runFixture(store.db, 'known', { guard: { maxDiffs: 2 } });
    fixture.source.records.push(row('a'), row('b'));
    await fixture.run();
    await dismiss(fixture, 'a');
    const [failing] = await listDiffs(store.db, { reconciliation: 'known', states: ['open'] }, { limit: 1 });
    await failDiffs(store.db, [failing?.id ?? ''], decision);
    // Four differ; one is dismissed and one is marked as not repairable.
    fixture.source.records.push(row('c'), row('d'));
    const run = await fixture.run({ mode: 'compensate' });
    expect(run).toMatchObject({
      phase: 'done',
      verdict: 'differ',
      counts: { missing: 4, decided: 1 },
      compensations: { planned: 2 },
    });
    fixture.source.records.push(row('e'));
    expect(await fixture.run({ mode: 'compensate' })).toMatchObject({ phase: 'held' });
  });

  test('does not count them as a lost side or a shift either', async () => {
    const fixture = runFixture(store.db, 'lost', { guard: { maxRatio: 1, minRecords: 10 } });
    fixture.source.records.push(...rows('n', 10));
    await fixture.run();
    await dismiss(fixture, ...rows('n', 10).map(({ key }) => key[0] ?? ''));
    expect(await fixture.run({ mode: 'compensate' })).toMatchObject({
      phase: 'done',
      guard: null,
      counts: { missing: 10, decided: 10 },
    });
  });

  test('does not stop a run that only checks; its report says what the guard saw', async () => {
    const fixture = runFixture(store.db, 'checks', { guard: { maxDiffs: 1 } });
    fixture.source.records.push(row('a'), row('b'));
    expect(await fixture.run({ mode: 'check' })).toMatchObject({
      phase: 'done',
      result: 'complete',
      verdict: 'differ',
      reason: 'the guard saw: too many diffs',
      guard: { pattern: 'too many diffs', facts: { diffs: 2, maxDiffs: 1 } },
    });
    expect(await guardPatterns(store.db, ['checks', 'known'])).toEqual(
      new Map([['checks', 'too many diffs']]),
    );
    fixture.source.records.pop();
    await fixture.run({ mode: 'check' });
    expect(await guardPatterns(store.db, ['checks'])).toEqual(new Map());
  });

  test('does not stop a run whose diffs have no repair', async () => {
    const fixture = runFixture(store.db, 'reports', { guard: { maxDiffs: 1 } });
    fixture.downstream.records.push(row('x'), row('y'));
    const run = await fixture.run({ mode: 'compensate' });
    expect(run).toMatchObject({ phase: 'done', counts: { extra: 2 }, guard: { pattern: 'too many diffs' } });
    // One that could be repaired among them is enough.
    fixture.source.records.push(row('a'));
    expect(await fixture.run({ mode: 'compensate' })).toMatchObject({ phase: 'held' });
  });
});

describe('the verdict', () => {
  test('of a run whose differences a person has all decided on is differ, with their count', async () => {
    const fixture = runFixture(store.db, 'all-decided');
    fixture.source.records.push(row('a'), row('b'));
    expect(await fixture.run()).toMatchObject({ verdict: 'differ', reason: null, counts: { decided: 0 } });
    await dismiss(fixture, 'a');
    expect(await fixture.run()).toMatchObject({ verdict: 'differ', reason: null, counts: { decided: 1 } });
    await dismiss(fixture, 'b');
    expect(await fixture.run()).toMatchObject({
      verdict: 'differ',
      reason: 'a person has decided on every difference',
      counts: { missing: 2, decided: 2 },
    });
  });
});

test('never holds more than a page of findings, in key order, in one commit', async () => {
  const fixture = runFixture(store.db, 'many', { guard: { minRecords: 10_000 } });
  fixture.source.records.push(...rows('m', 1_203));
  fixture.downstream.records.push(...rows('x', 7));
  const pages: number[] = [];
  const count = (answer: { command?: string; rows?: unknown[] } | unknown[], { sql }: { sql: string }) => {
    if (/^select .*finding/s.test(sql))
      pages.push((Array.isArray(answer) ? answer : (answer.rows ?? [])).length);
  };
  const seenBefore: Record<string, unknown>[] = [];
  Object.assign(fixture.deps, {
    checkpoint: async (name: string) => {
      if (name !== 'before-plan-commit') return;
      seenBefore.push(...(await store.db('diff').where({ reconciliation: 'many' }).limit(1)));
    },
  });
  store.db.on('query-response', count);
  const run = await fixture.run({ mode: 'compensate' });
  store.db.off('query-response', count);
  expect(run).toMatchObject({ phase: 'done', counts: { missing: 1_203, extra: 7 } });
  expect(run.compensations.planned).toBe(1_203);
  expect(Math.max(...pages)).toBe(500);
  // Nobody sees any of it before all of it is stored.
  expect(seenBefore).toEqual([]);
  const keys: string[] = await store
    .db('diff')
    .where({ reconciliation: 'many' })
    .orderBy('id')
    .pluck('business_key');
  expect(keys).toHaveLength(1_210);
  expect(keys).toEqual(keys.toSorted());
});
