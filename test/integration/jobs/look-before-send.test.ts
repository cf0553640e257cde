import { expect, test } from 'vitest';
import type { Look } from '../../../src/jobs/look-batch.ts';
import { runCompensation } from '../../../src/jobs/run-compensation.ts';
import { repairFixture } from '../../support/repair-fixture.ts';
import { until } from '../../support/wait.ts';
import { storeForFile } from '../store/store.ts';

const store = storeForFile();
const HOURS = `interval '1 hour'`;

test('a look that cannot read defers the send, and its clock starts once', async () => {
  const fixture = repairFixture(store.db, 'unreadable');
  const id = await fixture.queue('A-1');
  fixture.downstream.unreadable = true;
  await runCompensation(fixture.deps, { id, ring: 1 });
  const first = await fixture.row(id);
  expect(first).toMatchObject({
    state: 'deferred',
    escalation_detail: expect.stringContaining('nobody answers'),
  });
  expect(first.undecided_since).not.toBeNull();
  await store.db('compensation').where({ id }).update({ state: 'queued', ring: 2 });
  await runCompensation(fixture.deps, { id, ring: 2 });
  expect((await fixture.row(id)).undecided_since).toEqual(first.undecided_since);
  expect(fixture.sender.sent).toEqual([]);
});

test('looks that cannot read for giveUpAfter bring the diff to a person, and an unknown send stays unknown', async () => {
  const fixture = repairFixture(store.db, 'unreadable-long', { target: { idempotency: { dedupes: true } } });
  const id = await fixture.queue('A-1');
  fixture.source.unreadable = true;
  const since = (hours: number) => ({
    undecided_since: store.db.raw(`clock_timestamp() - ${hours} * ${HOURS}`),
  });
  await store
    .db('compensation')
    .where({ id })
    .update({ ...since(23.9), last_unknown: true });
  await runCompensation(fixture.deps, { id, ring: 1 });
  expect(await fixture.row(id)).toMatchObject({ state: 'deferred' });
  await store
    .db('compensation')
    .where({ id })
    .update({ ...since(24), state: 'queued', ring: 2 });
  await runCompensation(fixture.deps, { id, ring: 2 });
  expect(await fixture.row(id)).toMatchObject({
    state: 'escalated',
    escalation: 'unreadable',
    escalation_detail: expect.stringContaining('nobody answers'),
    last_unknown: true,
  });
  expect(await fixture.events(id)).toEqual(['escalated']);
  expect(fixture.ended).toMatchObject([{ result: 'unreadable' }]);
});

test('a hold within that time puts the person off, since nobody looked meanwhile', async () => {
  const fixture = repairFixture(store.db, 'unreadable-held');
  const id = await fixture.queue('A-1');
  fixture.source.unreadable = true;
  await store.db('gate').where({ gate: 'unreadable-held' }).update({ released_at: store.db.fn.now() });
  const undecided_since = store.db.raw(`clock_timestamp() - 30 * ${HOURS}`);
  await store.db('compensation').where({ id }).update({ undecided_since });
  await runCompensation(fixture.deps, { id, ring: 1 });
  expect(await fixture.row(id)).toMatchObject({ state: 'deferred' });
});

test('a look that decides stops the clock', async () => {
  const fixture = repairFixture(store.db, 'decided');
  const id = await fixture.queue('A-1');
  await store.db('compensation').where({ id }).update({ undecided_since: store.db.fn.now() });
  await runCompensation(fixture.deps, { id, ring: 1 });
  expect(await fixture.row(id)).toMatchObject({ state: 'applied', undecided_since: null });
});

test('a look that outlives its job starts the clock all the same', async () => {
  const fixture = repairFixture(store.db, 'outlived');
  const id = await fixture.queue('A-1');
  fixture.look = async (key) => {
    await store.db('compensation').where({ id }).update({ state: 'ready' });
    return { verdict: { verdict: 'undecided', key, reason: 'odd', time: null, finding: null }, takenAtMs: 0 };
  };
  await runCompensation(fixture.deps, { id, ring: 1 });
  const row = await fixture.row(id);
  expect(row.state).toBe('ready');
  expect(row.undecided_since).not.toBeNull();
});

test('a side whose looks are older than look.maxAge when they come never leads to a send', async () => {
  const fixture = repairFixture(store.db, 'slow-side');
  const id = await fixture.queue('A-1');
  let looks = 0;
  fixture.look = async (key) => {
    looks += 1;
    const { verdict } = await fixture.realLook(key);
    return { verdict, takenAtMs: performance.now() - 2_500 };
  };
  await runCompensation(fixture.deps, { id, ring: 1 });
  expect(looks).toBe(2);
  expect(fixture.sender.sent).toEqual([]);
  expect(await fixture.row(id)).toMatchObject({
    state: 'deferred',
    escalation_detail: expect.stringContaining('look.maxAge'),
  });
});

test('a look that grows too old while the gate is busy drops the slot', async () => {
  const fixture = repairFixture(store.db, 'grown-old', { reconciliation: { look: { maxAge: '500ms' } } });
  const id = await fixture.queue('A-1');
  let takenAtMs: number | undefined;
  fixture.look = async (key) => {
    const look = await fixture.realLook(key);
    takenAtMs ??= look.takenAtMs;
    return { ...look, takenAtMs };
  };
  let running: Promise<void> | undefined;
  await store.db.transaction(async (trx) => {
    await trx('gate').where({ gate: 'grown-old' }).forUpdate().first();
    running = runCompensation(fixture.deps, { id, ring: 1 });
    const tooOld = () => takenAtMs !== undefined && performance.now() - takenAtMs > 501;
    await until('the look is too old', tooOld);
  });
  await running;
  expect(fixture.sender.sent).toEqual([]);
  const dropped = await store.db('attempt').where({ compensation_id: id }).first('outcome', 'error_code');
  expect(dropped).toEqual({ outcome: 'not-sent', error_code: 'slot-missed' });
  expect(await fixture.row(id)).toMatchObject({ state: 'ready', attempts: 0, last_sent_at: null });
});

test.each([10, 1])(
  'a slow look keeps nobody else waiting, and the place comes back (%i near)',
  async (nearness) => {
    // Of one place that is near, the next gets the stead once the look took longer than it stays fresh.
    const reconciliation = nearness === 1 ? { look: { maxAge: '1s' } } : {};
    const fixture = repairFixture(store.db, `slow-look-${nearness}`, { nearness, reconciliation });
    const slow = await fixture.queue('A-1');
    const quick = await fixture.queue('A-2');
    let release: (look: null) => void = () => {};
    const hold = new Promise<null>((resolve) => {
      release = resolve;
    });
    fixture.look = async (key): Promise<Look> => {
      if (key[0] === 'A-1') await hold;
      return fixture.realLook(key);
    };
    const first = runCompensation(fixture.deps, { id: slow, ring: 1 });
    await until('the slow one has its job', async () => (await fixture.row(slow)).lease_owner === 'w1');
    await runCompensation(fixture.deps, { id: quick, ring: 1 });
    expect((await fixture.row(quick)).state).toBe('applied');
    expect((await fixture.row(slow)).state).toBe('queued');
    release(null);
    await first;
    expect((await fixture.row(slow)).state).toBe('applied');
  },
);

test('a slot without an open connection is dropped, and the row asks again', async () => {
  const fixture = repairFixture(store.db, 'no-connection');
  const id = await fixture.queue('A-1');
  fixture.sender.isReady = [false, true];
  await runCompensation(fixture.deps, { id, ring: 1 });
  expect(fixture.sender.sent).toEqual([]);
  expect(await fixture.row(id)).toMatchObject({ state: 'ready', attempts: 0 });
  await store.db('compensation').where({ id }).update({ state: 'queued', ring: 2 });
  await runCompensation(fixture.deps, { id, ring: 2 });
  expect(fixture.sender.sent).toHaveLength(1);
});

test('a slot further ahead than the look stays fresh is not taken', async () => {
  const fixture = repairFixture(store.db, 'far-slot', {
    target: { watermark: 150 },
    reconciliation: { look: { maxAge: '300ms' } },
  });
  const id = await fixture.queue('A-1');
  // 400 ms to the next slot: within the horizon of a grant, beyond the freshness of a look.
  const slots = store.db.raw(
    `jsonb_build_object('lastSlotMs', (extract(epoch from clock_timestamp()) * 1000)::float8)`,
  );
  await store.db('gate').where({ gate: 'far-slot' }).update({ slots });
  let looks = 0;
  fixture.look = async (key) => {
    looks += 1;
    return fixture.realLook(key);
  };
  await runCompensation(fixture.deps, { id, ring: 1 });
  expect(looks).toBeGreaterThan(1);
});

test('a job whose ring is over by its turn looks at nothing', async () => {
  const fixture = repairFixture(store.db, 'ring-over');
  const id = await fixture.queue('A-1');
  let looks = 0;
  fixture.look = (key) => {
    looks += 1;
    return fixture.realLook(key);
  };
  await runCompensation({ ...fixture.deps, times: { ...fixture.deps.times, ring: -1 } }, { id, ring: 1 });
  expect(looks).toBe(0);
  expect(await fixture.row(id)).toMatchObject({ state: 'queued', ring: 1 });
});
