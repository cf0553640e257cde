import { repairsKind } from '../compensate/plan.ts';
import { type FoundByKind, GUARD_SAMPLE, type Guard, guard, stopsReleased } from '../reconcile/guard.ts';
import type { DiffKind } from '../reconcile/record.ts';
import { type Db, inTransaction } from '../store/database.ts';
import { confirmedFindings, countFindings, type FindingCount, sampleMismatched } from '../store/findings.ts';
import { holdRun, otherRunHeld } from '../store/run-holds.ts';
import { finishRun, type Run, type RunCounts, type RunVerdict } from '../store/runs.ts';
import { countSuspects } from '../store/suspects.ts';
import { storePlan } from './make-plan.ts';
import { planFindings } from './plan-findings.ts';
import type { ReconcileDeps } from './reconcile-window.ts';

export interface Concluded {
  readonly counts: RunCounts;
  /** The pattern for which the run is on hold; null when it is done. */
  readonly heldFor: string | null;
}

type Pattern = Extract<Guard, { ok: false }>;

/**
 * Weighs what a run confirmed, then stores it in one commit: diffs, their compensations where they are wanted and the
 * guard lets them, and the run's end. Findings are read page by page.
 */
export function concludeRun(deps: ReconcileDeps, run: Run): Promise<Concluded> {
  const { db, pair } = deps;
  return inTransaction(db, async (trx) => {
    const found = await countFindings(trx, run.id);
    const counts = { ...run.counts, ...countsOf(found), ...(await countSuspects(trx, run.id)) };
    const pattern = await patternOf(trx, deps, run, found);
    // Where nothing would be planned there is nothing to stop.
    const repairable = found.some(({ kind, open }) => open > 0 && repairsKind(pair.config, kind));
    const held = pattern !== null && run.mode === 'compensate' && repairable;
    await planFindings(trx, {
      run,
      pair,
      configRevision: deps.configRevision,
      pages: confirmedFindings(trx, run.id),
      plan: !held && run.mode === 'compensate' && (await mayPlan(trx, run)),
    });
    if (run.mode === 'plan') await storePlan(trx, run, pair);
    await deps.checkpoint('before-plan-commit');
    if (held) {
      await holdRun(trx, run, { pattern: pattern.pattern, facts: pattern.facts }, counts);
      return { counts, heldFor: pattern.pattern };
    }
    const seen = pattern === null ? {} : { guard: { pattern: pattern.pattern, facts: pattern.facts } };
    await finishRun(trx, run, { result: 'complete', ...verdictOf(counts, pattern), counts, ...seen });
    return { counts, heldFor: null };
  });
}

function countsOf(found: readonly FindingCount[]): Pick<RunCounts, DiffKind | 'decided'> {
  const of = (kind: DiffKind) => found.find((one) => one.kind === kind)?.found ?? 0;
  return {
    missing: of('missing'),
    extra: of('extra'),
    mismatched: of('mismatched'),
    duplicate: of('duplicate'),
    decided: found.reduce((sum, one) => sum + one.decided, 0),
  };
}

/** What the guard sees in the diffs that nobody decided on, unless a person let this run go on with it. */
async function patternOf(
  trx: Db,
  { pair }: ReconcileDeps,
  run: Run,
  found: readonly FindingCount[],
): Promise<Pattern | null> {
  const open = (kind: DiffKind) => found.find((one) => one.kind === kind)?.open ?? 0;
  const byKind: FoundByKind = {
    missing: open('missing'),
    extra: open('extra'),
    mismatched: open('mismatched'),
    duplicate: open('duplicate'),
  };
  const sample = await sampleMismatched(trx, run.id, GUARD_SAMPLE);
  const seen = guard(run.counts, byKind, sample, pair.config.guard);
  if (seen.ok) return null;
  const released = run.guard?.released === undefined ? null : run.guard.pattern;
  return released === null || stopsReleased(seen.pattern, released) ? seen : null;
}

/** While a person decides on a held run, no later one may plan what that one found; a released one may. */
async function mayPlan(trx: Db, run: Run): Promise<boolean> {
  return run.guard?.released !== undefined || !(await otherRunHeld(trx, run));
}

/** Incomplete or undecided is never `match` (guarantee 3), and neither is a difference that a person accepted. */
function verdictOf(
  counts: RunCounts,
  pattern: Pattern | null,
): { verdict: RunVerdict; reason: string | null } {
  const differences = counts.missing + counts.extra + counts.mismatched + counts.duplicate;
  if (pattern !== null) return { verdict: 'differ', reason: `the guard saw: ${pattern.pattern}` };
  if (differences > 0 && differences === counts.decided)
    return { verdict: 'differ', reason: 'a person has decided on every difference' };
  if (differences > 0) return { verdict: 'differ', reason: null };
  if (counts.undecided > 0)
    return { verdict: 'undecided', reason: `${counts.undecided} records could not be decided` };
  return { verdict: 'match', reason: null };
}
