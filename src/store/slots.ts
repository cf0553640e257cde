import type { Instant } from '../reconcile/instant.ts';
import { type Db, inTransaction, only } from './database.ts';

/** One time at which a schedule had to run: a local wall time and which occurrence of it (clocks go back once a year). */
export interface Slot {
  readonly reconciliation: string;
  /** Wall time in the schedule's zone, `2026-11-30T02:30`. */
  readonly localTime: string;
  readonly occurrence: 1 | 2;
  readonly nominal: Instant;
  readonly outcome: 'run' | 'collapsed' | 'skipped';
  readonly runId: string | null;
}

export interface Schedule {
  readonly reconciliation: string;
  /** Slots before this moment are none of ours. */
  readonly startedAt: Instant;
  /** Why it does not run now; null when it does. A pause that ended by time is none. */
  readonly paused: string | null;
  readonly pausedUntil: Instant | null;
}

/** The newest slot that was claimed; null before the first. */
export async function latestSlot(db: Db, reconciliation: string): Promise<Slot | null> {
  const row = await db('slot').where({ reconciliation }).orderBy('nominal', 'desc').first();
  if (row === undefined) return null;
  return {
    reconciliation: row.reconciliation,
    localTime: row.local_time,
    occurrence: row.occurrence,
    nominal: row.nominal,
    outcome: row.outcome,
    runId: row.run_id,
  };
}

/**
 * Takes a slot for good. False when another node has it; a node that is claiming it at this moment is waited for.
 * Call in the transaction that creates the run, so that a slot is never taken without one.
 */
export async function claimSlot(db: Db, slot: Slot): Promise<boolean> {
  const claimed: unknown[] = await db('slot')
    .insert({
      reconciliation: slot.reconciliation,
      local_time: slot.localTime,
      occurrence: slot.occurrence,
      nominal: slot.nominal,
      outcome: slot.outcome,
      run_id: slot.runId,
    })
    .onConflict(['reconciliation', 'local_time', 'occurrence'])
    .ignore()
    .returning('nominal');
  return claimed.length === 1;
}

/** The schedule of a reconciliation, which starts now when it is new. */
export async function ensureSchedule(db: Db, reconciliation: string): Promise<Schedule> {
  return inTransaction(db, async (trx) => {
    await trx('schedule').insert({ reconciliation }).onConflict('reconciliation').ignore();
    return only(await readSchedules(trx, reconciliation));
  });
}

/** Stops a schedule until it is resumed, or for `forMs`. Its slots pass as the policy for missed ones says. */
export async function pauseSchedule(
  db: Db,
  reconciliation: string,
  pause: { reason: string; forMs?: number },
): Promise<void> {
  const values = {
    paused: pause.reason,
    paused_until:
      pause.forMs === undefined
        ? null
        : db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [pause.forMs]),
  };
  await db('schedule')
    .insert({ reconciliation, ...values })
    .onConflict('reconciliation')
    .merge(values);
}

/** False when it was not paused. */
export async function resumeSchedule(db: Db, reconciliation: string): Promise<boolean> {
  const changed = await db('schedule')
    .where({ reconciliation })
    .whereNotNull('paused')
    .update({ paused: null, paused_until: null });
  return changed === 1;
}

export async function listSchedules(db: Db): Promise<Schedule[]> {
  return readSchedules(db);
}

async function readSchedules(db: Db, reconciliation?: string): Promise<Schedule[]> {
  const lapsed = 'paused_until is not null and paused_until <= clock_timestamp()';
  const query = db('schedule').orderBy('reconciliation');
  if (reconciliation !== undefined) query.where({ reconciliation });
  const rows = await query.select(
    'reconciliation',
    'started_at',
    db.raw(`case when ${lapsed} then null else paused end as paused`),
    db.raw(`case when ${lapsed} then null else paused_until end as paused_until`),
  );
  return rows.map((row) => ({
    reconciliation: row.reconciliation,
    startedAt: row.started_at,
    paused: row.paused,
    pausedUntil: row.paused_until,
  }));
}

/** Keeps other claimers of this schedule waiting until the transaction ends. Call after `ensureSchedule`. */
export async function lockSchedule(trx: Db, reconciliation: string): Promise<void> {
  await trx('schedule').where({ reconciliation }).forUpdate().first('reconciliation');
}

/** The run that a claimed slot led to. */
export async function nameSlotRun(
  trx: Db,
  slot: Pick<Slot, 'reconciliation' | 'localTime' | 'occurrence'>,
  runId: string,
): Promise<void> {
  const { reconciliation, localTime: local_time, occurrence } = slot;
  await trx('slot').where({ reconciliation, local_time, occurrence }).update({ run_id: runId });
}
