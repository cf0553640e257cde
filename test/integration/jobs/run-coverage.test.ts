import { describe, expect, test } from 'vitest';
import { readCoverage, readProven } from '../../../src/store/coverage.ts';
import { storeClock } from '../../../src/store/database.ts';
import { at, NOON, record } from '../../support/records.ts';
import { row, runFixture } from '../../support/run-fixture.ts';
import { storeForFile } from '../store/store.ts';

const store = storeForFile();
const AFTERNOON = { from: at('13:00'), to: at('14:00') };
const moves = { movesCoverage: true };
const unreadable = (time: string) =>
  record('u', { state: { type: 'undecided', text: '?', reason: 'cannot be read' } }, at(time));

describe('coverage', () => {
  test('is founded by the first scheduled run, not by one that a person asked for before', async () => {
    const fixture = runFixture(store.db, 'founding');
    await fixture.run({ ...moves, trigger: 'adhoc', window: AFTERNOON });
    expect(await readCoverage(store.db, 'founding')).toBeNull();
    await fixture.run({ ...moves, window: NOON });
    expect(await readCoverage(store.db, 'founding')).toBe(NOON.to);
    await fixture.run({ ...moves, trigger: 'adhoc', window: AFTERNOON });
    expect(await readCoverage(store.db, 'founding')).toBe(AFTERNOON.to);
  });
});

describe('proven', () => {
  test('stands before an undecided record, at its own time', async () => {
    const fixture = runFixture(store.db, 'undecided');
    fixture.source.records.push(unreadable('12:40'));
    fixture.downstream.records.push(row('u'));
    expect(await fixture.run(moves)).toMatchObject({ verdict: 'undecided' });
    expect(await readCoverage(store.db, 'undecided')).toBe(NOON.to);
    expect(await readProven(store.db, 'undecided')).toBe(at('12:40'));
  });

  test('stands before records without a usable key, at the earliest of them', async () => {
    const fixture = runFixture(store.db, 'nameless');
    fixture.source.records.push(record([], {}, at('12:50')), record([], {}, at('12:20')));
    await fixture.run(moves);
    expect(await readProven(store.db, 'nameless')).toBe(at('12:20'));
  });

  test('stands before the chunk that showed a record without a time, whichever run takes it over', async () => {
    const fixture = runFixture(store.db, 'timeless', { window: { chunk: '30m' }, plan: 'lookup' });
    // A list of a window whose records say no time of their own.
    fixture.downstream.scan = async function* (window) {
      if (window.from === at('12:30')) yield [row('x', 'PAID', at('12:30'))].map(withoutTime);
    };
    fixture.downstream.records.push(withoutTime(row('x')));
    await fixture.run(moves);
    expect(await readProven(store.db, 'timeless')).toBe(at('12:30'));
    await fixture.run({ ...moves, mode: 'compensate', window: AFTERNOON });
    expect(await readCoverage(store.db, 'timeless')).toBe(AFTERNOON.to);
    expect(await readProven(store.db, 'timeless')).toBe(at('12:30'));
  });

  test('goes on to the coverage when nothing is open any more', async () => {
    const fixture = runFixture(store.db, 'clean');
    fixture.source.records.push(row('a'));
    await fixture.run(moves);
    expect(await readProven(store.db, 'clean')).toBe(at('12:30'));
    await store
      .db('diff')
      .where({ reconciliation: 'clean' })
      .update({ state: 'resolved', closed_at: await storeClock(store.db) });
    expect(await readProven(store.db, 'clean')).toBe(NOON.to);
  });
});

const withoutTime = (one: ReturnType<typeof row>) => ({ ...one, time: null });
