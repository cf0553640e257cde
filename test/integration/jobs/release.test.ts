import { describe, expect, test } from 'vitest';
import { discardRun, releaseHeldRun } from '../../../src/jobs/operator.ts';
import type { Value } from '../../../src/reconcile/record.ts';
import { record } from '../../support/records.ts';
import { type RunFixture, row, runFixture } from '../../support/run-fixture.ts';
import { storeForFile } from '../store/store.ts';

const store = storeForFile();
const decision = { actor: { name: 'ann', origin: 'test' }, reason: 'looked at ten of them' };
/** Three missing records are one too many. */
const GUARD = { guard: { maxDiffs: 2 } };

async function held(fixture: RunFixture): Promise<string> {
  const run = await fixture.run({ mode: 'compensate' });
  expect(run).toMatchObject({ phase: 'held', verdict: 'differ', compensations: { planned: 0 } });
  return run.id;
}

const planned = async (fixture: RunFixture) =>
  (await store.db('compensation').where({ reconciliation: fixture.name }).orderBy('business_key')).map(
    ({ business_key }) => JSON.parse(business_key)[0],
  );

describe('a released run', () => {
  test('looks at everything it found again, and plans only what still differs', async () => {
    const fixture = runFixture(store.db, 'stale', GUARD);
    fixture.source.records.push(row('a'), row('b'), row('c'));
    const id = await held(fixture);
    // Hours pass, and somebody repairs one of them by hand.
    fixture.downstream.records.push(row('b'));
    const looked = fixture.downstream.lookedUp;
    expect(await releaseHeldRun(store.db, id, decision)).toBe(true);
    expect(await store.db('run').where({ id }).first('phase', 'verdict')).toEqual({
      phase: 'rechecking',
      verdict: null,
    });
    expect(await fixture.step(id)).toMatchObject({
      phase: 'done',
      result: 'complete',
      verdict: 'differ',
      counts: { missing: 2, healed: 1 },
    });
    expect(fixture.downstream.lookedUp).toBe(looked + 3);
    expect(await planned(fixture)).toEqual(['a', 'c']);
    // The diff of the one that was repaired by hand closes with it.
    expect(await fixture.diffs()).toEqual({ a: ['open'], b: ['healed'], c: ['open'] });
  });

  test('plans a record by what the sides hold now', async () => {
    const fixture = runFixture(store.db, 'moved', GUARD);
    fixture.source.records.push(row('a'), row('b'), row('c'));
    const id = await held(fixture);
    fixture.source.records[0] = row('a', 'REFUNDED');
    await releaseHeldRun(store.db, id, decision);
    await fixture.step(id);
    const { payload } = await store
      .db('compensation')
      .where({ reconciliation: 'moved', business_key: '["a"]' })
      .first('payload');
    expect(payload.body).toBe('{"state":"REFUNDED"}');
    // Its source had moved since the last look, so it was looked at twice.
    const suspect = await store.db('suspect').where({ run_id: id, business_key: '["a"]' }).first('looks');
    expect(suspect.looks).toBe(3);
  });

  test('finds nothing left where all has healed meanwhile, and is no match by mistake', async () => {
    const fixture = runFixture(store.db, 'healed', GUARD);
    fixture.source.records.push(row('a'), row('b'), row('c'));
    const id = await held(fixture);
    fixture.downstream.records.push(...fixture.source.records);
    await releaseHeldRun(store.db, id, decision);
    expect(await fixture.step(id)).toMatchObject({ verdict: 'match', counts: { missing: 0, healed: 3 } });
    expect(await planned(fixture)).toEqual([]);
  });

  test('cannot plan on a side that cannot be read', async () => {
    const fixture = runFixture(store.db, 'unreadable', GUARD);
    fixture.source.records.push(row('a'), row('b'), row('c'));
    const id = await held(fixture);
    await releaseHeldRun(store.db, id, decision);
    fixture.downstream.lookup = () => Promise.reject(new TypeError('the side is gone'));
    await store.db('run').where({ id }).update({ tries: 9 });
    expect(await fixture.step(id)).toMatchObject({ phase: 'done', result: 'failed', verdict: 'undecided' });
    expect(await planned(fixture)).toEqual([]);
  });

  test('is held again for a shift that it did not show before, and not for its size', async () => {
    const fixture = runFixture(store.db, 'shifting', {
      compare: { amount: 'decimal' },
      repair: { mismatched: { target: 'gateway', action: { type: 'http', path: '/{key}' } } },
      guard: { maxDiffs: 5 },
    });
    const amount = (no: number, text: string) =>
      record(`n-${no}`, { amount: { type: 'decimal', text } satisfies Value });
    for (let i = 1; i <= 12; i += 1) {
      fixture.source.records.push(amount(i, `${i}`));
      fixture.downstream.records.push(amount(i, `${i * i + 1000}`));
    }
    const run = await fixture.run({ mode: 'compensate' });
    expect(run).toMatchObject({ phase: 'held', reason: 'too many diffs' });
    fixture.downstream.records.splice(0, 12);
    for (let i = 1; i <= 12; i += 1) fixture.downstream.records.push(amount(i, `${i * 100}`));
    await releaseHeldRun(store.db, run.id, decision);
    expect(await fixture.step(run.id)).toMatchObject({ phase: 'held', reason: 'constant factor' });
    await releaseHeldRun(store.db, run.id, decision);
    expect(await fixture.step(run.id)).toMatchObject({ phase: 'done', compensations: { planned: 12 } });
  });

  test('plans although another run is on hold, which plans nothing', async () => {
    const fixture = runFixture(store.db, 'two', GUARD);
    fixture.source.records.push(row('a'), row('b'), row('c'));
    const first = await held(fixture);
    const second = await held(fixture);
    await releaseHeldRun(store.db, second, decision);
    expect(await fixture.step(second)).toMatchObject({ phase: 'done', compensations: { planned: 3 } });
    expect(await store.db('run').where({ id: first }).first('phase')).toEqual({ phase: 'held' });
    // Released as well, it finds these repairs under way and adds none.
    await releaseHeldRun(store.db, first, decision);
    await fixture.step(first);
    expect(await planned(fixture)).toEqual(['a', 'b', 'c']);
  });

  test('can be discarded while it looks; what it had not decided stays open', async () => {
    const fixture = runFixture(store.db, 'discarded', GUARD);
    fixture.source.records.push(row('a'), row('b'), row('c'));
    const id = await held(fixture);
    await releaseHeldRun(store.db, id, decision);
    expect(await discardRun(store.db, id, decision)).toBe(true);
    expect(await fixture.step(id)).toMatchObject({ result: 'discarded', verdict: 'undecided' });
    expect(await fixture.diffs()).toEqual({ a: ['open'], b: ['open'], c: ['open'] });
    expect(await store.db('suspect').where({ run_id: id }).distinct('state').pluck('state')).toEqual([
      'undecided',
    ]);
  });
});
