import { ownPace } from '../compensate/gate/own-pace.ts';
import { type GateTiming, type SlotState, spacing } from '../compensate/gate/watermark.ts';
import type { Compensation } from './compensation-row.ts';
import type { Db } from './database.ts';
import { lockGate, saveSlots } from './gate-row.ts';

/** Gates of runs that have a watermark of their own. A slot of theirs is granted with the target's, in `grants.ts`. */

const runGateName = (runId: string): string => `run-${runId}`;

/** Gives a run a watermark of its own, and the gate that keeps it, before anything of it can be sent. */
export async function setRunWatermark(db: Db, runId: string, watermark: number): Promise<void> {
  await db('run').where({ id: runId }).update({ watermark });
  await db('gate')
    .insert({ gate: runGateName(runId), purpose: 'run', run_id: runId })
    .onConflict(['gate', 'purpose'])
    .ignore();
}

/** The run that a call is made for. */
export type PacedRow = Pick<Compensation, 'runId' | 'runWatermark'>;

/**
 * Asks the gate of a run with a watermark of its own, after its target's gate and always in that order. Null: the
 * target's slot is the run's too; else the milliseconds until the run has one.
 */
export async function askRunGate(
  trx: Db,
  run: PacedRow,
  slotMs: number,
  timing: GateTiming,
): Promise<number | null> {
  if (run.runId === null || run.runWatermark === null) return null;
  const name = runGateName(run.runId);
  const { slots, nowMs, system } = await lockGate(trx, name, 'run');
  const reply = ownPace(slots, { slotMs, nowMs, limit: run.runWatermark, timing });
  if (reply.state !== slots) await saveSlots(trx, name, 'run', reply.state, system);
  return reply.fits ? null : Math.max(1, reply.inMs);
}

export interface PacedRun {
  readonly runId: string;
  readonly watermark: number;
  /** Rows of the run that are in the queue for the target asked about. */
  readonly queued: number;
  /** Milliseconds until the run's next slot; 0 or less is now. */
  readonly nextSlotInMs: number;
}

interface SlotRow {
  readonly run_id: string;
  readonly watermark: number;
  readonly queued: number;
  readonly slots: SlotState | null;
  readonly now: number;
}

/** Runs with a watermark of their own. */
export async function pacedRuns(db: Db, target: string, timing: GateTiming): Promise<PacedRun[]> {
  const { rows } = await db.raw<{ rows: SlotRow[] }>(
    `select r.id as run_id, r.watermark, g.slots, (extract(epoch from clock_timestamp()) * 1000)::float8 as now,
            (select count(*) from compensation c
              where c.state = 'queued' and c.target = ? and c.run_id = r.id)::int as queued
       from gate g join run r on r.id = g.run_id
      where g.purpose = 'run' and r.watermark is not null`,
    [target],
  );
  return rows.map(({ run_id, watermark, queued, slots, now }) => ({
    runId: run_id,
    watermark,
    queued,
    nextSlotInMs: slots === null ? 0 : slots.lastSlotMs + spacing(watermark, timing) - now,
  }));
}

/** Milliseconds until the next slot of a run's gate; 0 or less is now. */
export async function runSlotInMs(
  db: Db,
  run: { id: string; watermark: number },
  timing: GateTiming,
): Promise<number> {
  const { rows } = await db.raw<{ rows: Pick<SlotRow, 'slots' | 'now'>[] }>(
    `select slots, (extract(epoch from clock_timestamp()) * 1000)::float8 as now
       from gate where gate = ? and purpose = 'run'`,
    [runGateName(run.id)],
  );
  const row = rows[0];
  if (row === undefined || row.slots === null) return 0;
  return row.slots.lastSlotMs + spacing(run.watermark, timing) - row.now;
}

/** Forgets the gates of runs that have nothing left to send. */
export async function deleteIdleRunGates(db: Db): Promise<void> {
  await db.raw(
    `delete from gate g using run r
      where r.id = g.run_id and g.purpose = 'run' and r.phase = 'done' and g.updated_at < clock_timestamp() - interval '1 hour'
        and not exists (select from compensation c where c.run_id = r.id and c.ended_at is null)`,
  );
}
