import type { Schedule } from '../config/schema.ts';
import { type Db, inTransaction, storeClock } from '../store/database.ts';
import { createRun, type RunMode, unfinishedScheduledRun } from '../store/runs.ts';
import { claimSlot, ensureSchedule, latestSlot, lockSchedule, nameSlotRun } from '../store/slots.ts';
import { type SlotTime, slotsBetween } from './cron.ts';

/** More missed slots than this are claimed in several rounds. */
const MOST_SLOTS = 1000;

export interface Scheduled {
  readonly name: string;
  readonly schedule: Schedule;
  readonly zone: string;
  readonly mode: RunMode;
  readonly revision: number | null;
}

/**
 * Claims every slot that is due and not yet claimed, and makes the runs that the policies ask for. The tick and the
 * upkeep timer both call this; the slot rows decide, so calling it twice or on two nodes at once changes nothing.
 * Returns the ids of the runs made.
 */
export async function claimDueSlots(db: Db, scheduled: Scheduled): Promise<string[]> {
  return inTransaction(db, async (trx) => {
    const state = await ensureSchedule(trx, scheduled.name);
    await lockSchedule(trx, scheduled.name);
    const now = await storeClock(trx);
    if (state.paused !== null && (state.pausedUntil === null || state.pausedUntil > now)) return [];
    const latest = await latestSlot(trx, scheduled.name);
    const after = Date.parse(latest?.nominal ?? state.startedAt);
    const due = slotsBetween(scheduled.schedule, scheduled.zone, after, Date.parse(now), MOST_SLOTS);
    if (due.length === 0) return [];
    const { overlapping } = scheduled.schedule;
    let before = overlapping === 'allow' ? null : await unfinishedScheduledRun(trx, scheduled.name);
    const busy = overlapping === 'skip' && before !== null;
    const runs: string[] = [];
    for (const { slot, outcome } of decideSlots(due, scheduled.schedule.missed, busy)) {
      // A wall time that was claimed already (the zone was changed, say) is not run again.
      const claimed = await claimSlot(trx, { reconciliation: scheduled.name, ...slot, outcome, runId: null });
      if (!claimed || outcome !== 'run') continue;
      const id = await createScheduledRun(trx, scheduled, before);
      await nameSlotRun(trx, { reconciliation: scheduled.name, ...slot }, id);
      if (overlapping === 'queue') before = id;
      runs.push(id);
    }
    return runs;
  });
}

function createScheduledRun(trx: Db, scheduled: Scheduled, waitsFor: string | null): Promise<string> {
  return createRun(trx, {
    reconciliation: scheduled.name,
    revision: scheduled.revision,
    trigger: 'schedule',
    mode: scheduled.mode,
    window: null,
    movesCoverage: true,
    waitsFor,
  });
}

/**
 * What becomes of each due slot (pure). `collapse`: the latest runs and its window reaches back to the coverage, so
 * the earlier ones are covered by it. `skip`: only a slot that is not late runs; the coverage still leaves no hole.
 */
export function decideSlots(
  due: readonly SlotTime[],
  missed: Schedule['missed'],
  busy: boolean,
): { slot: SlotTime; outcome: 'run' | 'collapsed' | 'skipped' }[] {
  return due.map((slot, index) => {
    if (busy) return { slot, outcome: 'skipped' };
    const last = index === due.length - 1;
    if (missed === 'each' || last) return { slot, outcome: 'run' };
    return { slot, outcome: missed === 'skip' ? 'skipped' : 'collapsed' };
  });
}
