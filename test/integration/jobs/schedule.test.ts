import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { claimDueSlots, type Scheduled } from '../../../src/jobs/schedule.ts';
import { type Db, openDatabase } from '../../../src/store/database.ts';
import { listRuns } from '../../../src/store/list-runs.ts';
import { ensureSchedule, pauseSchedule, resumeSchedule } from '../../../src/store/slots.ts';
import { createStore } from '../../support/database.ts';

const scheduled = (more: Partial<Scheduled['schedule']> = {}): Scheduled => ({
  name: 'orders',
  zone: 'UTC',
  mode: 'check',
  revision: null,
  schedule: {
    cron: '* * * * *',
    gap: 'run-after',
    overlap: 'first',
    missed: 'collapse',
    overlapping: 'allow',
    ...more,
  },
});

describe('claimDueSlots', () => {
  let store: Awaited<ReturnType<typeof createStore>>;
  let db: Db;

  beforeAll(async () => {
    store = await createStore();
    db = openDatabase(store.url, { applicationName: 'test' });
  });
  afterAll(async () => {
    await db.destroy();
    await store.drop();
  });
  beforeEach(async () => {
    await db.raw('truncate slot, schedule, run cascade');
  });

  /** As if the schedule had been known for so many minutes. */
  async function knownFor(minutes: number): Promise<void> {
    await ensureSchedule(db, 'orders');
    await db('schedule').update({
      started_at: db.raw(`clock_timestamp() - ? * interval '1 minute'`, [minutes]),
    });
  }

  it('makes one run for the slots that were missed, and records each of them', async () => {
    await knownFor(5);
    const runs = await claimDueSlots(db, scheduled());
    expect(runs).toHaveLength(1);
    const slots = await db('slot').orderBy('nominal').select('outcome', 'run_id');
    expect(slots).toHaveLength(5);
    expect(slots.map((slot) => slot.outcome)).toEqual([...Array(4).fill('collapsed'), 'run']);
    expect(slots.at(-1)?.run_id).toBe(runs[0]);
    expect(await claimDueSlots(db, scheduled())).toEqual([]);
  });

  it('makes one run per slot when many nodes claim at once', async () => {
    await knownFor(3);
    const claimed = await Promise.all(
      Array.from({ length: 8 }, () => claimDueSlots(db, scheduled({ missed: 'each' }))),
    );
    expect(claimed.flat()).toHaveLength(3);
    expect(await listRuns(db, { limit: 10 })).toHaveLength(3);
  });

  it('claims nothing before the schedule was known', async () => {
    expect(await claimDueSlots(db, scheduled({ cron: '0 0 1 1 *' }))).toEqual([]);
    expect(await db('slot').count('* as n').first()).toEqual({ n: '0' });
  });

  it('claims nothing while it is paused, and catches up in one run afterwards', async () => {
    await knownFor(3);
    await pauseSchedule(db, 'orders', { reason: 'maintenance' });
    expect(await claimDueSlots(db, scheduled())).toEqual([]);
    await resumeSchedule(db, 'orders');
    expect(await claimDueSlots(db, scheduled())).toHaveLength(1);
  });

  it('skips slots while a run is under way, and lets runs overlap only when told so', async () => {
    await knownFor(2);
    expect(await claimDueSlots(db, scheduled({ overlapping: 'skip' }))).toHaveLength(1);
    await db.raw('delete from slot');
    expect(await claimDueSlots(db, scheduled({ overlapping: 'skip' }))).toHaveLength(0);
    await db.raw('delete from slot');
    expect(await claimDueSlots(db, scheduled({ overlapping: 'allow' }))).toHaveLength(1);
  });
});
