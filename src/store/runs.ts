import type { Instant } from '../reconcile/instant.ts';
import type { Window } from '../reconcile/record.ts';
import type { Db } from './database.ts';
import { jsonColumn } from './json-column.ts';
import { setRunWatermark } from './run-gate.ts';

export type RunPhase = 'reading' | 'rechecking' | 'concluding' | 'held' | 'done';
export type RunResult = 'complete' | 'incomplete' | 'failed' | 'discarded';
export type RunVerdict = 'match' | 'differ' | 'undecided';
/** `plan`: as `check`, and what a run in mode `compensate` would plan is stored as a plan. */
export type RunMode = 'check' | 'plan' | 'compensate';

export interface RunCounts {
  readonly source: number;
  readonly downstream: number;
  readonly matched: number;
  readonly missing: number;
  readonly extra: number;
  readonly mismatched: number;
  readonly duplicate: number;
  readonly healed: number;
  readonly undecided: number;
  /** Of the four kinds above: differences that a person dismissed or resolved, and whose records have not changed. */
  readonly decided: number;
}

/** The pattern that the guard saw in a run's diffs. */
export interface RunGuard {
  readonly pattern: string;
  readonly facts?: unknown;
  /** The reason of the person who let the run go on. */
  readonly released?: string;
}

export const NO_COUNTS: RunCounts = {
  source: 0,
  downstream: 0,
  matched: 0,
  missing: 0,
  extra: 0,
  mismatched: 0,
  duplicate: 0,
  healed: 0,
  undecided: 0,
  decided: 0,
};

export interface Run {
  readonly id: string;
  readonly reconciliation: string;
  readonly revision: number | null;
  readonly trigger: 'schedule' | 'adhoc';
  readonly mode: RunMode;
  readonly phase: RunPhase;
  readonly window: Window | null;
  /** Chunks before this moment are stored; a crashed run goes on from here. */
  readonly readTo: Instant | null;
  readonly movesCoverage: boolean;
  readonly tries: number;
  readonly counts: RunCounts;
  readonly plan: { readonly name: string; readonly why: string } | null;
  readonly guard: RunGuard | null;
  readonly leaseToken: string;
}

export interface NewRun {
  readonly reconciliation: string;
  readonly revision: number | null;
  readonly trigger: 'schedule' | 'adhoc';
  readonly mode: RunMode;
  readonly window: Window | null;
  readonly movesCoverage: boolean;
  /** The run that must be done first; null for none. */
  readonly waitsFor?: string | null;
  /** A ceiling of its own, in sends per window, below its targets'. */
  readonly watermark?: number | null;
}

interface RunRow {
  id: string;
  reconciliation: string;
  revision: number | null;
  trigger: 'schedule' | 'adhoc';
  mode: RunMode;
  phase: RunPhase;
  window_from: Instant | null;
  window_to: Instant | null;
  read_to: Instant | null;
  moves_coverage: boolean;
  tries: number;
  counts: Partial<RunCounts>;
  plan: Run['plan'];
  guard: Run['guard'];
  lease_token: string;
}

function fromRow(row: RunRow): Run {
  return {
    id: row.id,
    reconciliation: row.reconciliation,
    revision: row.revision,
    trigger: row.trigger,
    mode: row.mode,
    phase: row.phase,
    window: row.window_from && row.window_to ? { from: row.window_from, to: row.window_to } : null,
    readTo: row.read_to,
    movesCoverage: row.moves_coverage,
    tries: row.tries,
    counts: { ...NO_COUNTS, ...row.counts },
    plan: row.plan,
    guard: row.guard,
    leaseToken: row.lease_token,
  };
}

export async function createRun(db: Db, run: NewRun): Promise<string> {
  const [row] = await db('run')
    .insert({
      reconciliation: run.reconciliation,
      revision: run.revision,
      trigger: run.trigger,
      mode: run.mode,
      window_from: run.window?.from ?? null,
      window_to: run.window?.to ?? null,
      moves_coverage: run.movesCoverage,
      waits_for: run.waitsFor ?? null,
    })
    .returning('id');
  if (run.watermark) await setRunWatermark(db, row.id, run.watermark);
  return row.id;
}

/** A run that waits for another goes on when that one is done or on hold. */
const MAY_GO = `(waits_for is null or exists (
  select from run other where other.id = run.waits_for and other.phase in ('done', 'held')))`;

/**
 * Takes a run for one step, when it is due and nobody holds it. Every later write names the token, so a worker whose
 * lease was taken over changes nothing.
 */
export async function claimRun(db: Db, id: string, owner: string, leaseMs: number): Promise<Run | null> {
  const { rows } = await db.raw<{ rows: RunRow[] }>(
    `update run set lease_owner = :owner, lease_token = lease_token + 1,
            lease_until = clock_timestamp() + :leaseMs * interval '1 millisecond'
      where id = :id and phase not in ('done', 'held') and due_at <= clock_timestamp()
        and (lease_until is null or lease_until < clock_timestamp())
        and ${MAY_GO}
      returning *`,
    { id, owner, leaseMs },
  );
  const row = rows[0];
  return row ? fromRow(row) : null;
}

/** False when another worker has taken the run over, or the step has ended and let go of it. */
export async function renewRunLease(db: Db, run: Run, leaseMs: number): Promise<boolean> {
  const changed = await db('run')
    .where({ id: run.id, lease_token: run.leaseToken })
    // A renewal that comes late must not lock a run that waits for its next step.
    .whereNotNull('lease_owner')
    .update({ lease_until: db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [leaseMs]) });
  return changed === 1;
}

export class RunTakenOver extends Error {
  override readonly name = 'RunTakenOver';
}

/** Changes the run while this worker holds it, else throws `RunTakenOver`. */
export async function updateClaimed(db: Db, run: Run, values: Record<string, unknown>): Promise<void> {
  const changed = await db('run')
    .where({ id: run.id, lease_token: run.leaseToken })
    .whereNot('phase', 'done')
    .update(values);
  if (changed !== 1)
    throw new RunTakenOver(`run ${run.id} was taken over by another worker or ended by a person`);
}

/** `cappedHoldbackMs`: how far the window was held back when `maxHoldback` did not let it go further; null else. */
export async function saveRunWindow(
  db: Db,
  run: Run,
  window: Window,
  cappedHoldbackMs: number | null,
): Promise<void> {
  await updateClaimed(db, run, {
    window_from: window.from,
    window_to: window.to,
    capped_holdback_ms: cappedHoldbackMs,
  });
}

/** Stored in the same transaction as the chunk's suspects and the coverage (rule 5.10). */
export async function saveChunk(
  db: Db,
  run: Run,
  chunk: { readTo: Instant; counts: RunCounts; plan: Run['plan'] },
): Promise<void> {
  await updateClaimed(db, run, {
    read_to: chunk.readTo,
    counts: jsonColumn(chunk.counts),
    plan: jsonColumn(chunk.plan),
    tries: 0,
  });
}

/** Ends a step: the next one is due after `afterMs`, and anybody may take it. */
export async function yieldRun(
  db: Db,
  run: Run,
  next: { phase: RunPhase; afterMs: number; tries?: number; reason?: string | null },
): Promise<void> {
  await updateClaimed(db, run, {
    phase: next.phase,
    tries: next.tries ?? 0,
    reason: next.reason ?? null,
    due_at: db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [next.afterMs]),
    lease_until: null,
    lease_owner: null,
    ring_until: null,
  });
}

export async function finishRun(
  db: Db,
  run: Run,
  end: {
    result: RunResult;
    verdict: RunVerdict;
    reason: string | null;
    counts: RunCounts;
    /** Left out: what the run has of a guard stays. */
    guard?: RunGuard;
  },
): Promise<void> {
  await updateClaimed(db, run, {
    phase: 'done',
    result: end.result,
    verdict: end.verdict,
    reason: end.reason,
    counts: jsonColumn(end.counts),
    ...(end.guard === undefined ? {} : { guard: jsonColumn(end.guard) }),
    timings: db.raw(
      `jsonb_build_object('wallMs', round(extract(epoch from clock_timestamp() - created_at) * 1000))`,
    ),
    ended_at: db.raw('clock_timestamp()'),
    lease_until: null,
    lease_owner: null,
    ring_until: null,
  });
}

/**
 * Runs that are due and have no live job: each gets a new ring number and a time until which that ring counts as
 * alive. The caller puts them on the queue after the commit; when it dies in between, the ring expires (rule 6.19).
 */
export async function ringDueRuns(
  db: Db,
  limit: number,
  ringMs: number,
): Promise<{ id: string; ring: number }[]> {
  const { rows } = await db.raw<{ rows: { id: string; ring: number }[] }>(
    `with due as (
       select id from run
        where phase not in ('done', 'held') and due_at <= clock_timestamp()
          and (lease_until is null or lease_until < clock_timestamp())
          and (ring_until is null or ring_until < clock_timestamp())
          and ${MAY_GO}
        order by due_at limit :limit for update skip locked)
     update run set ring = ring + 1, ring_until = clock_timestamp() + :ringMs * interval '1 millisecond'
       from due where run.id = due.id returning run.id, run.ring`,
    { limit, ringMs },
  );
  return rows;
}

/** The newest scheduled run of a reconciliation that is not done; null when there is none. */
export async function unfinishedScheduledRun(db: Db, reconciliation: string): Promise<string | null> {
  const row = await db('run')
    .where({ reconciliation, trigger: 'schedule' })
    .whereNotIn('phase', ['done', 'held'])
    .orderBy('id', 'desc')
    .first('id');
  return row?.id ?? null;
}
