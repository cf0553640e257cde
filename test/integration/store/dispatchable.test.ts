import { expect, test } from 'vitest';
import { dispatchDue, targetsWithDueWork } from '../../../src/store/dispatchable.ts';
import { returnLostRings } from '../../../src/store/sent.ts';
import { insertCompensation, insertDiff } from './rows.ts';
import { storeForFile } from './store.ts';

const store = storeForFile();

/** Repairs of one target in this state, due so many seconds ago. */
async function repairs(
  target: string,
  count: number,
  values: Readonly<Record<string, unknown>>,
  dueAgo = 0,
): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index++) {
    const key = JSON.stringify([`${target}-${JSON.stringify(values)}-${dueAgo}-${index}`]);
    const diff = await insertDiff(store.db, target, { business_key: key });
    const due_at = store.db.raw(`clock_timestamp() - ${dueAgo} * interval '1 second'`);
    ids.push(
      await insertCompensation(store.db, target, diff, { target, business_key: key, due_at, ...values }),
    );
  }
  return ids;
}

const READY = { state: 'ready', attempts: 0 };

test('a retry stays one when it was put back, or when its ring was lost', async () => {
  const [putBack] = await repairs('put-back', 1, { state: 'ready', attempts: 1 });
  expect(await dispatchDue(store.db, 'put-back', 5, 30_000)).toMatchObject([{ id: putBack, retry: true }]);
  await store
    .db('compensation')
    .where({ id: putBack })
    .update({ ring_until: store.db.raw(`now() - interval '1 s'`) });
  expect(await returnLostRings(store.db, 10)).toBe(1);
  expect(await dispatchDue(store.db, 'put-back', 5, 30_000)).toMatchObject([
    { id: putBack, ring: 2, retry: true },
  ]);
});

test('what failed only because the target was down is no retry', async () => {
  const ids = await repairs('never-counted', 2, { state: 'retrying', attempts: 0 });
  const rung = await dispatchDue(store.db, 'never-counted', 5, 30_000);
  expect(rung).toEqual(ids.map((id) => ({ id, ring: 1, retry: false })));
});

test.each(['ready', 'deferred', 'retrying'])(
  'retries that are %s get one place in five while fresh work waits',
  async (state) => {
    const target = `shares-${state}`;
    await repairs(target, 20, { state, attempts: 1 });
    await repairs(target, 20, READY);
    const rung = await dispatchDue(store.db, target, 10, 30_000);
    expect(rung).toHaveLength(10);
    expect(rung.filter((row) => row.retry)).toHaveLength(2);
  },
);

test('idle shares go to whoever waits', async () => {
  await repairs('idle', 4, { state: 'deferred', attempts: 2 });
  await repairs('idle', 1, READY);
  expect(await targetsWithDueWork(store.db, ['idle', 'nobody'])).toEqual(['idle']);
  const rung = await dispatchDue(store.db, 'idle', 5, 30_000);
  expect(rung.filter((row) => row.retry)).toHaveLength(4);
});

test('what is due longest goes first, so rows that come back pass over nobody', async () => {
  const back = await repairs('longest', 3, { state: 'deferred', attempts: 0 }, 1);
  const waiting = await repairs('longest', 2, READY, 60);
  const rung = await dispatchDue(store.db, 'longest', 3, 30_000);
  expect(rung.map((row) => row.id)).toEqual([back[0], ...waiting]);
});
