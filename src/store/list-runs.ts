import type { StateName } from '../compensate/state.ts';
import type { Instant } from '../reconcile/instant.ts';
import type { Window } from '../reconcile/record.ts';
import type { Db } from './database.ts';
import { rowId } from './row-id.ts';
import { NO_COUNTS, type Run, type RunCounts, type RunResult, type RunVerdict } from './runs.ts';

/** A run as it is shown. */
export interface RunListing
  extends Pick<Run, 'id' | 'reconciliation' | 'revision' | 'trigger' | 'mode' | 'phase' | 'movesCoverage'> {
  readonly result: RunResult | null;
  readonly verdict: RunVerdict | null;
  readonly reason: string | null;
  /** Null until a scheduled run has asked its source for the time. */
  readonly window: Window | null;
  readonly readTo: Instant | null;
  readonly tries: number;
  readonly watermark: number | null;
  readonly counts: RunCounts;
  readonly timings: Readonly<Record<string, unknown>>;
  readonly plan: unknown;
  readonly guard: unknown;
  readonly createdAt: Instant;
  readonly endedAt: Instant | null;
}

/** What became of a run's repairs. */
export interface RunCompensations {
  /** Every compensation of the run, whatever became of it. */
  readonly planned: number;
  /** Those that have not ended. */
  readonly open: number;
  /** Attempts that reached for the target; a repair may take several. */
  readonly sent: number;
  readonly verified: number;
  readonly healed: number;
  readonly escalated: number;
  readonly byState: Readonly<Partial<Record<StateName, number>>>;
}

export interface RunDetail extends RunListing {
  readonly compensations: RunCompensations;
  /** Target -> the most attempts of this run that started within any half-open 60 seconds. */
  readonly maxSendsIn60s: Readonly<Record<string, number>>;
}

/** Newest first. `before` is the last id of the page before. */
export async function listRuns(
  db: Db,
  page: { reconciliation?: string; limit: number; before?: string },
): Promise<RunListing[]> {
  const query = db('run').orderBy('id', 'desc').limit(page.limit);
  if (page.reconciliation !== undefined) query.where('reconciliation', page.reconciliation);
  if (page.before !== undefined) query.where('id', '<', rowId(page.before));
  return (await query.select()).map(fromRow);
}

/** Null when there is no such run, or none any more. */
export async function readRun(db: Db, id: string): Promise<RunDetail | null> {
  const row = await db('run')
    .where({ id: rowId(id) })
    .first();
  if (row === undefined) return null;
  const [byState, sends] = await Promise.all([countStates(db, id), readSends(db, id)]);
  return {
    ...fromRow(row),
    compensations: {
      planned: sum(byState.map(({ n }) => n)),
      open: sum(byState.filter(({ ended }) => !ended).map(({ n }) => n)),
      sent: sum(sends.map(({ sent }) => sent)),
      verified: byState.find(({ state }) => state === 'verified')?.n ?? 0,
      healed: byState.find(({ state }) => state === 'healed')?.n ?? 0,
      escalated: byState.find(({ state }) => state === 'escalated')?.n ?? 0,
      byState: Object.fromEntries(byState.map(({ state, n }) => [state, n])),
    },
    maxSendsIn60s: Object.fromEntries(sends.map(({ target, most }) => [target, most])),
  };
}

async function countStates(
  db: Db,
  runId: string,
): Promise<{ state: StateName; ended: boolean; n: number }[]> {
  const { rows } = await db.raw<{ rows: { state: StateName; ended: boolean; n: number }[] }>(
    `select state, ended_at is not null as ended, count(*)::int as n
       from compensation where run_id = ? group by 1, 2 order by 1`,
    [runId],
  );
  return rows;
}

/** An attempt whose slot passed unused never started; one without an end may have, at its slot. */
async function readSends(db: Db, runId: string): Promise<{ target: string; sent: number; most: number }[]> {
  const { rows } = await db.raw<{ rows: { target: string; sent: number; most: number }[] }>(
    `select target, count(*)::int as sent, max(n)::int as most from (
       select target, count(*) over (partition by target order by at
                range between interval '59.999999 seconds' preceding and current row) as n
         from (select a.target, coalesce(a.started_at, a.slot_at) as at
                 from attempt a join compensation c on c.id = a.compensation_id
                where c.run_id = ? and a.outcome is distinct from 'not-sent') started) counted
      group by target order by target`,
    [runId],
  );
  return rows;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}

interface RunRow {
  id: string;
  reconciliation: string;
  revision: number | null;
  trigger: RunListing['trigger'];
  mode: RunListing['mode'];
  phase: RunListing['phase'];
  result: RunResult | null;
  verdict: RunVerdict | null;
  reason: string | null;
  window_from: Instant | null;
  window_to: Instant | null;
  read_to: Instant | null;
  moves_coverage: boolean;
  tries: number;
  watermark: number | null;
  counts: Partial<RunCounts>;
  timings: Readonly<Record<string, unknown>>;
  plan: unknown;
  guard: unknown;
  created_at: Instant;
  ended_at: Instant | null;
}

function fromRow(row: RunRow): RunListing {
  return {
    id: row.id,
    reconciliation: row.reconciliation,
    revision: row.revision,
    trigger: row.trigger,
    mode: row.mode,
    phase: row.phase,
    result: row.result,
    verdict: row.verdict,
    reason: row.reason,
    window: row.window_from && row.window_to ? { from: row.window_from, to: row.window_to } : null,
    readTo: row.read_to,
    movesCoverage: row.moves_coverage,
    tries: row.tries,
    watermark: row.watermark,
    counts: { ...NO_COUNTS, ...row.counts },
    timings: row.timings,
    plan: row.plan,
    guard: row.guard,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  };
}
