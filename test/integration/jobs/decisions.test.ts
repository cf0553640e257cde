import { describe, expect, test } from 'vitest';
import { closeDiffs } from '../../../src/jobs/operator.ts';
import { readDiffTimeline } from '../../../src/store/diff-timeline.ts';
import { listDiffs } from '../../../src/store/list-diffs.ts';
import { at, NOON, record } from '../../support/records.ts';
import { type RunFixture, row, runFixture } from '../../support/run-fixture.ts';
import { storeForFile } from '../store/store.ts';

const store = storeForFile();
const decision = { actor: { name: 'ann', origin: 'test' }, reason: 'agreed by phone' };
type Decided = 'resolved' | 'dismissed';

/** A fixture whose one record `a` differs in its state, and a person has decided on that. Gives the diff's id. */
async function decided(
  name: string,
  state: Decided = 'dismissed',
  config: object = {},
): Promise<{ fixture: RunFixture; id: string }> {
  const fixture = runFixture(store.db, name, config);
  fixture.source.records.push(row('a', 'PAID'));
  fixture.downstream.records.push(row('a', 'OPEN'));
  await fixture.run();
  return { fixture, id: await decide(fixture, state) };
}

async function decide(fixture: RunFixture, state: Decided): Promise<string> {
  const [diff] = await listDiffs(store.db, { reconciliation: fixture.name, states: ['open'] }, { limit: 1 });
  if (diff === undefined) throw new Error('nothing is open');
  expect(await closeDiffs(store.db, [diff.id], { state }, decision)).toMatchObject([{ done: true }]);
  return diff.id;
}

const states = async (fixture: RunFixture) => (await fixture.diffs())['a'];
const events = async (id: string) =>
  ((await readDiffTimeline(store.db, id))?.timeline ?? []).flatMap((entry) =>
    entry.entry === 'event' ? [entry.event] : [],
  );

describe.each<Decided>(['resolved', 'dismissed'])('a diff that a person %s (rule 6.5)', (state) => {
  test('stays closed while both records are unchanged', async () => {
    const { fixture } = await decided(`kept-${state}`, state);
    for (let i = 0; i < 3; i += 1)
      expect(await fixture.run({ mode: 'compensate' })).toMatchObject({
        verdict: 'differ',
        counts: { mismatched: 1, decided: 1 },
      });
    expect(await states(fixture)).toEqual([state]);
  });

  test('is open again when the source’s record changes', async () => {
    const { fixture, id } = await decided(`source-${state}`, state);
    fixture.source.records[0] = row('a', 'REFUNDED');
    expect(await fixture.run()).toMatchObject({ counts: { mismatched: 1, decided: 0 } });
    expect(await states(fixture)).toEqual([state, 'open']);
    expect(await events(id)).toContain('lapsed');
  });

  test('is open again when the downstream’s record changes', async () => {
    const { fixture } = await decided(`downstream-${state}`, state);
    fixture.downstream.records[0] = row('a', 'CANCELLED');
    await fixture.run();
    expect(await states(fixture)).toEqual([state, 'open']);
  });

  test('is open again when a record is gone, or there twice', async () => {
    const { fixture } = await decided(`gone-${state}`, state);
    fixture.downstream.records.splice(0);
    await fixture.run();
    expect(await states(fixture)).toEqual([state, 'open']);
    await decide(fixture, state);
    fixture.source.records.push(row('a', 'PAID'));
    await fixture.run();
    expect(await states(fixture)).toEqual([state, state, 'open']);
  });

  test('does not come back when the records do', async () => {
    const { fixture } = await decided(`back-${state}`, state);
    fixture.source.records[0] = row('a', 'REFUNDED');
    await fixture.run();
    fixture.source.records[0] = row('a', 'PAID');
    expect(await fixture.run()).toMatchObject({ counts: { mismatched: 1, decided: 0 } });
    // It is the diff that the change opened, seen again as what it is now.
    expect(await states(fixture)).toEqual([state, 'open']);
    const [open] = await listDiffs(
      store.db,
      { reconciliation: fixture.name, states: ['open'] },
      { limit: 1 },
    );
    expect(open).toMatchObject({ timesSeen: 2, fields: [{ field: 'state', source: { text: 'PAID' } }] });
  });

  test('is over once the sides were seen equal, whatever they hold later', async () => {
    const { fixture, id } = await decided(`equal-${state}`, state);
    fixture.downstream.records[0] = row('a', 'PAID');
    expect(await fixture.run()).toMatchObject({ verdict: 'match' });
    expect(await events(id)).toContain('lapsed');
    fixture.downstream.records[0] = row('a', 'OPEN');
    expect(await fixture.run()).toMatchObject({ verdict: 'differ', counts: { decided: 0 } });
    expect(await states(fixture)).toEqual([state, 'open']);
  });
});

test('any compared field ends a decision, and none that is not compared', async () => {
  const fixture = runFixture(store.db, 'fields', {
    compare: { state: 'text', city: 'text', note: 'ignore' },
  });
  const full = (state: string, city: string, note: string) => record('a', { state, city, note });
  fixture.source.records.push(full('PAID', 'Rome', 'x'));
  fixture.downstream.records.push(full('OPEN', 'Rome', 'x'));
  await fixture.run();
  await decide(fixture, 'dismissed');
  fixture.source.records[0] = full('PAID', 'Rome', 'y');
  fixture.downstream.records[0] = full('OPEN', 'Rome', 'z');
  await fixture.run();
  expect(await states(fixture)).toEqual(['dismissed']);
  // Equal on both sides, and still another record than the one that was decided on.
  fixture.source.records[0] = full('PAID', 'Oslo', 'x');
  fixture.downstream.records[0] = full('OPEN', 'Oslo', 'x');
  await fixture.run();
  expect(await states(fixture)).toEqual(['dismissed', 'open']);
});

test('a record that cannot be decided leaves the decision as it is', async () => {
  const { fixture, id } = await decided('unreadable', 'dismissed');
  const unreadable = { type: 'undecided', text: '?', reason: 'cannot be read' } as const;
  fixture.source.records[0] = record('a', { state: unreadable });
  expect(await fixture.run()).toMatchObject({ verdict: 'undecided', counts: { undecided: 1 } });
  expect(await states(fixture)).toEqual(['dismissed']);
  fixture.source.records[0] = row('a', 'PAID');
  expect(await fixture.run()).toMatchObject({ counts: { mismatched: 1, decided: 1, undecided: 0 } });
  expect(await events(id)).not.toContain('lapsed');
});

test('a source that keeps moving leaves it as it is, and so does a side that cannot be read', async () => {
  const { fixture, id } = await decided('moving', 'dismissed', { recheck: { delay: '1ms', looks: 3 } });
  const lookup = fixture.source.lookup.bind(fixture.source);
  let version = 0;
  fixture.source.lookup = async (keys, signal) => {
    version += 1;
    fixture.source.records[0] = row('a', `V${version}`);
    return lookup(keys, signal);
  };
  expect(await fixture.run()).toMatchObject({ verdict: 'undecided' });
  fixture.source.lookup = lookup;
  fixture.source.records[0] = row('a', 'PAID');
  expect(await fixture.run()).toMatchObject({ counts: { decided: 1 } });
  expect(await states(fixture)).toEqual(['dismissed']);
  expect(await events(id)).not.toContain('lapsed');
});

test('a dismissal for a time is open again after it, also when no window reads the record any more', async () => {
  const { fixture, id } = await decided('expired', 'dismissed');
  const later = { from: at('18:00'), to: at('19:00') };
  await fixture.run({ window: later });
  expect(await states(fixture)).toEqual(['dismissed']);
  const expire = () =>
    store
      .db('diff')
      .where({ id })
      .update({ dismissed_until: store.db.raw('clock_timestamp()') });
  await expire();
  expect(await fixture.run({ window: later })).toMatchObject({ counts: { source: 0, mismatched: 1 } });
  expect(await states(fixture)).toEqual(['dismissed', 'open']);
  expect(await events(id)).toContain('lapsed');
});

test('a dismissal whose time is over while the sides agree ends without a diff, and is not looked at for ever', async () => {
  const { fixture, id } = await decided('over', 'dismissed');
  const later = { from: at('18:00'), to: at('19:00') };
  await store
    .db('diff')
    .where({ id })
    .update({ dismissed_until: store.db.raw('clock_timestamp()') });
  fixture.downstream.records[0] = row('a', 'PAID');
  expect(await fixture.run({ window: later })).toMatchObject({ verdict: 'match', counts: { healed: 1 } });
  const looked = fixture.source.lookedUp;
  expect(await fixture.run({ window: later })).toMatchObject({ counts: { healed: 0 } });
  expect(fixture.source.lookedUp).toBe(looked);
  expect(await states(fixture)).toEqual(['dismissed']);
});

test('a record that moved out of the window and is unchanged stays decided', async () => {
  const { fixture } = await decided('restamped', 'dismissed');
  fixture.source.records[0] = row('a', 'PAID', at('18:30'));
  fixture.downstream.records[0] = row('a', 'OPEN', at('18:30'));
  expect(await fixture.run({ window: NOON })).toMatchObject({ counts: { source: 0, decided: 1 } });
  expect(await states(fixture)).toEqual(['dismissed']);
});
