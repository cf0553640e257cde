import { describe, expect, test } from 'vitest';
import { addMillis, type Instant, parseInstant } from '../../../src/reconcile/instant.ts';
import { moveCoverage, readCoverage, readProven } from '../../../src/store/coverage.ts';
import { inTransaction, storeClock } from '../../../src/store/database.ts';
import {
  claimSlot,
  ensureSchedule,
  latestSlot,
  listSchedules,
  pauseSchedule,
  resumeSchedule,
  type Slot,
} from '../../../src/store/slots.ts';
import { heartbeat, liveWorkers, removeWorker } from '../../../src/store/workers.ts';
import { until } from '../../support/wait.ts';
import { insertDiff, insertRun, insertSuspect } from './rows.ts';
import { storeForFile } from './store.ts';

const store = storeForFile();

function at(time: string): Instant {
  const instant = parseInstant(`2026-11-30T${time}Z`);
  if (instant === undefined) throw new Error(time);
  return instant;
}

describe('slots', () => {
  const slot = (reconciliation: string, hour: string, occurrence: 1 | 2 = 1): Slot => ({
    reconciliation,
    localTime: `2026-10-25T${hour}`,
    occurrence,
    nominal: addMillis(at(hour), occurrence === 2 ? 3_600_000 : 0),
    outcome: 'run',
    runId: null,
  });

  test('of many nodes that claim one slot at once exactly one gets it', async () => {
    const claims = await Promise.all(
      Array.from({ length: 6 }, () =>
        inTransaction(store.db, async (trx) => claimSlot(trx, slot('crowd', '02:30'))),
      ),
    );
    expect(claims.filter(Boolean)).toHaveLength(1);
  });

  test('a claim whose transaction fails leaves the slot to the next', async () => {
    const failing = inTransaction(store.db, async (trx) => {
      await claimSlot(trx, slot('failing', '02:30'));
      throw new Error('the node died');
    });
    await expect(failing).rejects.toThrow('the node died');
    expect(await claimSlot(store.db, slot('failing', '02:30'))).toBe(true);
  });

  test('both occurrences of a repeated local time are slots, and the latest is known', async () => {
    expect(await latestSlot(store.db, 'autumn')).toBeNull();
    expect(await claimSlot(store.db, slot('autumn', '02:30', 2))).toBe(true);
    expect(await claimSlot(store.db, slot('autumn', '02:30', 1))).toBe(true);
    expect(await claimSlot(store.db, slot('autumn', '02:30', 1))).toBe(false);
    expect(await latestSlot(store.db, 'autumn')).toEqual(slot('autumn', '02:30', 2));
  });
});

describe('a schedule', () => {
  test('starts once and keeps its start', async () => {
    const [one, two] = await Promise.all([
      ensureSchedule(store.db, 'twice'),
      ensureSchedule(store.db, 'twice'),
    ]);
    expect(two).toEqual(one);
    expect(one).toMatchObject({ paused: null, pausedUntil: null });
  });

  test('is paused until it is resumed', async () => {
    await pauseSchedule(store.db, 'paused', { reason: 'migration' });
    expect(await ensureSchedule(store.db, 'paused')).toMatchObject({
      paused: 'migration',
      pausedUntil: null,
    });
    expect(await listSchedules(store.db)).toContainEqual(
      expect.objectContaining({ reconciliation: 'paused', paused: 'migration' }),
    );
    expect(await resumeSchedule(store.db, 'paused')).toBe(true);
    expect(await resumeSchedule(store.db, 'paused')).toBe(false);
    expect(await ensureSchedule(store.db, 'paused')).toMatchObject({ paused: null });
  });

  test('a pause with an end lapses by itself', async () => {
    await pauseSchedule(store.db, 'lapsing', { reason: 'lunch', forMs: 60_000 });
    expect(await ensureSchedule(store.db, 'lapsing')).toMatchObject({ paused: 'lunch' });
    await pauseSchedule(store.db, 'lapsing', { reason: 'blink', forMs: 1 });
    await until('the pause is over', async () => (await ensureSchedule(store.db, 'lapsing')).paused === null);
  });
});

describe('coverage', () => {
  const move = (name: string, from: string, to: string, founds = true) =>
    moveCoverage(store.db, name, { from: at(from), to: at(to) }, { founds });

  test('is founded by a scheduled window alone, and moved by any', async () => {
    expect(await move('founded', '10:00', '11:00', false)).toBe(false);
    expect(await readCoverage(store.db, 'founded')).toBeNull();
    expect(await move('founded', '09:00', '10:00')).toBe(true);
    expect(await move('founded', '10:00', '11:00', false)).toBe(true);
    expect(await readCoverage(store.db, 'founded')).toBe(at('11:00'));
  });

  test('begins with the first window and grows with each that touches it', async () => {
    expect(await readCoverage(store.db, 'grows')).toBeNull();
    expect(await move('grows', '10:00', '11:00')).toBe(true);
    expect(await move('grows', '11:00', '12:00:00.000001')).toBe(true);
    expect(await readCoverage(store.db, 'grows')).toBe('2026-11-30T12:00:00.000001Z');
  });

  test('does not move over a hole', async () => {
    await move('hole', '10:00', '11:00');
    expect(await move('hole', '11:00:00.000001', '12:00')).toBe(false);
    expect(await readCoverage(store.db, 'hole')).toBe(at('11:00'));
  });

  test('stays where it is for a window that lies before it', async () => {
    await move('back', '10:00', '11:00');
    expect(await move('back', '09:00', '10:30')).toBe(true);
    expect(await readCoverage(store.db, 'back')).toBe(at('11:00'));
  });

  test('windows that end at once leave the greatest end', async () => {
    await move('race', '10:00', '11:00');
    await Promise.all(['11:10', '11:40', '11:20', '11:30'].map((to) => move('race', '11:00', to)));
    expect(await readCoverage(store.db, 'race')).toBe(at('11:40'));
  });
});

describe('proven', () => {
  async function covered(name: string): Promise<void> {
    await moveCoverage(store.db, name, { from: at('10:00'), to: at('11:00') }, { founds: true });
  }
  const done = { phase: 'done', result: 'complete' };

  test('is nothing without coverage, and coverage where nothing is open', async () => {
    expect(await readProven(store.db, 'p-none')).toBeNull();
    await covered('p-clean');
    expect(await readProven(store.db, 'p-clean')).toBe(at('11:00'));
  });

  test.each(['open', 'failed'])('stands before the oldest diff that is %s', async (state) => {
    const name = `p-diff-${state}`;
    await covered(name);
    await insertDiff(store.db, name, { state, record_time: at('10:20') });
    await insertDiff(store.db, name, { state, record_time: at('10:10'), business_key: '["A-2"]' });
    await insertDiff(store.db, name, {
      state: 'verified',
      closed_at: store.db.raw('now()'),
      record_time: at('10:05'),
    });
    expect(await readProven(store.db, name)).toBe(at('10:10'));
  });

  test('stands before a suspect that waits, and before a finding that a held run has not planned', async () => {
    await covered('p-held');
    const run = await insertRun(store.db, 'p-held', { phase: 'held' });
    await insertSuspect(store.db, 'p-held', run, { record_time: at('10:30'), state: 'confirmed' });
    expect(await readProven(store.db, 'p-held')).toBe(at('10:30'));
    await insertSuspect(store.db, 'p-held', run, { record_time: at('10:15'), business_key: '["A-2"]' });
    expect(await readProven(store.db, 'p-held')).toBe(at('10:15'));
    await store.db('suspect').where({ run_id: run }).update({ state: 'healed' });
    expect(await readProven(store.db, 'p-held')).toBe(at('11:00'));
  });

  test('stands before what a failed run confirmed and never concluded', async () => {
    await covered('p-failed');
    const run = await insertRun(store.db, 'p-failed', { phase: 'done', result: 'failed' });
    await insertSuspect(store.db, 'p-failed', run, { record_time: at('10:20'), state: 'confirmed' });
    expect(await readProven(store.db, 'p-failed')).toBe(at('10:20'));
    // What a complete run confirmed is a diff, and counts as that.
    await store.db('run').where({ id: run }).update({ result: 'complete' });
    expect(await readProven(store.db, 'p-failed')).toBe(at('11:00'));
  });

  test('stands before an undecided record until a later complete run has read its time again', async () => {
    await covered('p-undecided');
    const run = await insertRun(store.db, 'p-undecided', done);
    await insertSuspect(store.db, 'p-undecided', run, { record_time: at('10:30'), state: 'undecided' });
    await insertRun(store.db, 'p-undecided', { phase: 'done', result: 'incomplete' });
    await insertRun(store.db, 'p-undecided', { ...done, window_from: at('10:31') });
    expect(await readProven(store.db, 'p-undecided')).toBe(at('10:30'));
    await insertRun(store.db, 'p-undecided', { ...done, window_from: at('10:30') });
    expect(await readProven(store.db, 'p-undecided')).toBe(at('11:00'));
  });

  test('takes a record without a time from the start of its run’s window', async () => {
    await covered('p-timeless');
    const run = await insertRun(store.db, 'p-timeless', { ...done, window_from: at('10:45') });
    await insertSuspect(store.db, 'p-timeless', run, { state: 'undecided' });
    expect(await readProven(store.db, 'p-timeless')).toBe(at('10:45'));
  });
});

describe('workers', () => {
  test('are alive for a while after each heartbeat', async () => {
    await heartbeat(store.db, { id: 'alive', version: '0.1.0', revision: null });
    await heartbeat(store.db, { id: 'dead', version: '0.1.0', revision: null });
    await store.db('worker').where({ id: 'dead' }).update({ seen_at: '2026-11-30T10:00:00Z' });
    const before = (await liveWorkers(store.db, 60_000)).find(({ id }) => id === 'alive');
    await heartbeat(store.db, { id: 'alive', version: '0.2.0', revision: 3 });
    const live = await liveWorkers(store.db, 60_000);
    expect(live.map(({ id, version, revision }) => [id, version, revision])).toEqual([['alive', '0.2.0', 3]]);
    expect(live[0]?.startedAt).toBe(before?.startedAt);
    expect((live[0]?.seenAt ?? '') <= (await storeClock(store.db))).toBe(true);
    await removeWorker(store.db, 'alive');
    expect(await liveWorkers(store.db, 60_000)).toEqual([]);
  });
});
