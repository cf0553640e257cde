import { TrueupError } from '../error.ts';
import type { Logger } from '../observe/logger.ts';
import type { CompareContext } from '../reconcile/compare-records.ts';
import { type Guard, guard } from '../reconcile/guard.ts';
import type { Instant } from '../reconcile/instant.ts';
import { lookBoth } from '../reconcile/look.ts';
import { readWindow } from '../reconcile/read-window.ts';
import { type RecheckPolicy, recheck } from '../reconcile/recheck.ts';
import { keyText, type Verdict, type Window } from '../reconcile/record.ts';
import { SideError } from '../reconcile/side.ts';
import { chunks, scheduledWindow } from '../reconcile/window.ts';
import { moveCoverage, readCoverage } from '../store/coverage.ts';
import { type Db, inTransaction } from '../store/database.ts';
import {
  finishRun,
  holdRun,
  NO_COUNTS,
  otherRunHeld,
  type Run,
  type RunCounts,
  RunTakenOver,
  type RunVerdict,
  renewRunLease,
  saveChunk,
  saveRunWindow,
  yieldRun,
} from '../store/runs.ts';
import {
  adoptSuspects,
  confirmedFindings,
  countSuspects,
  dueSuspects,
  endSuspects,
  insertSuspects,
  insertUndecided,
  leaveUndecided,
  nextSuspectDue,
  type SuspectEnd,
  type WaitingSuspect,
} from '../store/suspects.ts';
import type { Pair } from './pair.ts';
import { planFindings } from './plan-findings.ts';
import type { Times } from './times.ts';

/**
 * The order of a run's stages: window -> read -> suspects | recheck -> diffs | guard -> plan -> one commit. Each call
 * does the step that the run's phase names and ends with the next phase stored, so a run can die anywhere and go on.
 */
export interface ReconcileDeps {
  readonly db: Db;
  readonly pair: Pair;
  readonly look: CompareContext;
  readonly configRevision: number | null;
  readonly logger: Logger;
  readonly times: Times;
  readonly checkpoint: (name: string) => Promise<void>;
  readonly onRead: (counts: { source: number; downstream: number }) => void;
  readonly onEnded: (result: string) => void;
}

const RECHECK_BATCH = 1000;
/** What fails for a while is tried again after these pauses, before the run ends without a verdict. */
const TRY_AGAIN_MS: Readonly<Record<Run['phase'], readonly number[]>> = {
  reading: [1000, 5000],
  // By now the coverage is past what the suspects stand for, so there is more patience.
  rechecking: [1000, 5000, 15_000, 30_000, 60_000],
  concluding: [1000, 5000, 15_000, 30_000, 60_000],
  held: [],
  done: [],
};
/** Errors that say something about the sides or the plan; trying again does not help. */
const UNREADABLE = new Set([
  'TRU_SIDE_ORDER',
  'TRU_NO_WINDOW',
  'TRU_NO_MERGE',
  'TRU_NO_RAW',
  'TRU_TOO_MANY_SUSPECTS',
]);

export async function reconcileStep(deps: ReconcileDeps, run: Run, signal: AbortSignal): Promise<void> {
  try {
    await keepingLease(deps, run, signal, (inner) => step(deps, run, inner));
  } catch (error) {
    if (signal.aborted || error instanceof RunTakenOver) throw error;
    await failed(deps, run, error instanceof Error ? error : new Error(String(error)));
  }
}

async function step(deps: ReconcileDeps, run: Run, signal: AbortSignal): Promise<void> {
  if (run.phase === 'reading') await read(deps, run, signal);
  else if (run.phase === 'rechecking') await recheckSuspects(deps, run, signal);
  else if (run.phase === 'concluding') await conclude(deps, run);
}

/**
 * A side that cannot be read makes the run incomplete (rule 5.3), anything else that keeps failing makes it failed;
 * neither is a difference or a match. What such a run still suspects is taken over by the next one.
 */
async function failed(deps: ReconcileDeps, run: Run, error: Error): Promise<void> {
  const aboutSides =
    error instanceof SideError || (error instanceof TrueupError && UNREADABLE.has(error.code));
  const maySucceed = error instanceof SideError ? error.transient : !aboutSides;
  const again = maySucceed ? TRY_AGAIN_MS[run.phase][run.tries] : undefined;
  if (again !== undefined) {
    const fact = {
      event: 'run.step-failed',
      run: run.id,
      phase: run.phase,
      tries: run.tries + 1,
      err: error,
    };
    deps.logger.warn(fact, 'a step of a run failed; trying again');
    const next = { phase: run.phase, afterMs: again, tries: run.tries + 1, reason: error.message };
    return yieldRun(deps.db, run, next);
  }
  const result = aboutSides ? 'incomplete' : 'failed';
  deps.logger.error({ event: `run.${result}`, run: run.id, err: error }, `the run is ${result}`);
  await inTransaction(deps.db, async (trx) => {
    await leaveUndecided(trx, run.id, error.message);
    const suspects = await countSuspects(trx, run.id);
    const counts = { ...run.counts, healed: suspects.healed, undecided: suspects.undecided };
    await finishRun(trx, run, { result, verdict: 'undecided', reason: error.message, counts });
  });
  deps.onEnded(result);
}

// -------------------------------------------------------------------------------------------------------- read

async function read(deps: ReconcileDeps, run: Run, signal: AbortSignal): Promise<void> {
  const { db, pair } = deps;
  const window = run.window ?? (await chooseWindow(deps, run, signal));
  let counts = run.counts;
  for (const chunk of chunks(window, pair.config.window.chunk)) {
    if (run.readTo !== null && chunk.to <= run.readTo) continue;
    const result = await readWindow({
      window: chunk,
      source: pair.source,
      downstream: pair.downstream,
      plan: pair.config.plan,
      rules: deps.look.rules,
      digestKey: deps.look.digestKey,
      maxSuspects: pair.config.maxSuspects,
      signal,
    });
    deps.onRead(result.counts);
    await deps.checkpoint('after-diff');
    counts = addCounts(counts, { ...NO_COUNTS, ...result.counts, undecided: 0 });
    const readTo: Instant = chunk.to;
    await inTransaction(db, async (trx) => {
      await insertSuspects(trx, run, result.suspects, pair.config.recheck.delay);
      await insertUndecided(trx, run, result.undecided);
      await saveChunk(trx, run, { readTo, counts, plan: result.plan });
      if (run.movesCoverage) await moveCoverage(trx, run.reconciliation, chunk);
      await deps.checkpoint('before-commit');
    });
  }
  await inTransaction(db, (trx) => adoptSuspects(trx, run));
  const wait = await nextSuspectDue(db, run.id);
  await yieldRun(
    db,
    run,
    wait === null ? { phase: 'concluding', afterMs: 0 } : { phase: 'rechecking', afterMs: wait },
  );
}

async function chooseWindow(deps: ReconcileDeps, run: Run, signal: AbortSignal): Promise<Window> {
  const { db, pair } = deps;
  const clock = await pair.source.clock(signal);
  const chosen = scheduledWindow({
    policy: pair.config.window,
    coverage: await readCoverage(db, run.reconciliation),
    sourceNow: clock.now,
    oldestOpen: clock.oldestOpen,
    seesTransactions: clock.seesTransactions,
    zone: pair.zone,
  });
  if (chosen.capped) {
    deps.logger.warn(
      { event: 'run.holdback-capped', run: run.id, heldBackMs: chosen.heldBackMs },
      'a transaction has been open for longer than window.maxHoldback; records it still writes are left to the lookback',
    );
  }
  await saveRunWindow(db, run, chosen.window);
  return chosen.window;
}

/** Renews the run's lease for as long as `fn` works, and stops it when another worker took the run over. */
async function keepingLease<T>(
  deps: ReconcileDeps,
  run: Run,
  signal: AbortSignal,
  fn: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const lost = new AbortController();
  const timer = setInterval(() => {
    renewRunLease(deps.db, run, deps.times.runLease).then(
      (ours) => {
        if (!ours)
          lost.abort(new RunTakenOver(`run ${run.id} was taken over by another worker or cancelled`));
      },
      // A store that does not answer now may answer before the lease ends; the commit is fenced in any case.
      (err: unknown) =>
        deps.logger.warn({ event: 'run.lease-not-renewed', run: run.id, err }, 'lease not renewed'),
    );
  }, deps.times.runLease / 3);
  try {
    return await fn(AbortSignal.any([signal, lost.signal]));
  } finally {
    clearInterval(timer);
  }
}

function addCounts(a: RunCounts, b: RunCounts): RunCounts {
  const names = Object.keys(NO_COUNTS) as (keyof RunCounts)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as unknown as RunCounts;
}

// ----------------------------------------------------------------------------------------------------- recheck

async function recheckSuspects(deps: ReconcileDeps, run: Run, signal: AbortSignal): Promise<void> {
  const { db, pair } = deps;
  for (;;) {
    const suspects = await dueSuspects(db, run.id, RECHECK_BATCH);
    if (suspects.length === 0) break;
    const keys = suspects.map((suspect) => suspect.key);
    const verdicts = await lookBoth(keys, pair.source, pair.downstream, deps.look, signal);
    await deps.checkpoint('after-recheck');
    const policy = { delayMs: pair.config.recheck.delay, looks: pair.config.recheck.looks };
    await endSuspects(
      db,
      suspects.map((suspect) => endOf(suspect, verdicts.get(keyText(suspect.key)), policy)),
    );
  }
  const wait = await nextSuspectDue(db, run.id);
  await yieldRun(
    db,
    run,
    wait === null ? { phase: 'concluding', afterMs: 0 } : { phase: 'rechecking', afterMs: wait },
  );
}

function endOf(suspect: WaitingSuspect, verdict: Verdict | undefined, policy: RecheckPolicy): SuspectEnd {
  const { id } = suspect;
  if (!verdict) return { id, state: 'undecided', reason: 'the look gave no answer', finding: null };
  const result = recheck(suspect, verdict, policy);
  switch (result.next) {
    case 'healed':
      return { id, state: 'healed' };
    case 'diff':
      return { id, state: 'confirmed', finding: result.finding };
    case 'undecided':
      return { id, state: 'undecided', reason: result.reason, finding: result.finding };
    case 'look-again':
      return { ...result, id, state: 'waiting' };
  }
}

// ---------------------------------------------------------------------------------------------------- conclude

async function conclude(deps: ReconcileDeps, run: Run): Promise<void> {
  const { db, pair } = deps;
  const findings = await confirmedFindings(db, run.id);
  const suspects = await countSuspects(db, run.id);
  const kinds = (kind: string) => findings.filter((finding) => finding.kind === kind).length;
  const counts: RunCounts = {
    ...run.counts,
    missing: kinds('missing'),
    extra: kinds('extra'),
    mismatched: kinds('mismatched'),
    duplicate: kinds('duplicate'),
    healed: suspects.healed,
    undecided: suspects.undecided,
  };
  const guarded: Guard =
    run.guard?.released === undefined ? guard(counts, findings, pair.config.guard) : { ok: true };
  await inTransaction(db, async (trx) => {
    await planFindings(trx, {
      run,
      pair,
      configRevision: deps.configRevision,
      findings,
      // While a person decides on a held run, no later one may plan what that one found.
      plan: guarded.ok && run.mode === 'compensate' && !(await otherRunHeld(trx, run)),
    });
    await deps.checkpoint('before-plan-commit');
    if (guarded.ok) await finishRun(trx, run, { ...verdictOf(findings.length, counts), counts });
    else await holdRun(trx, run, { pattern: guarded.pattern, facts: guarded.facts }, counts);
  });
  deps.onEnded(guarded.ok ? 'complete' : 'held');
  deps.logger.info(
    { event: guarded.ok ? 'run.done' : 'run.held', run: run.id, reconciliation: run.reconciliation, counts },
    guarded.ok ? 'run finished' : `run on hold: ${guarded.pattern}`,
  );
}

/** Incomplete or undecided is never `match` (guarantee 3). */
function verdictOf(
  diffs: number,
  counts: RunCounts,
): { result: 'complete'; verdict: RunVerdict; reason: string | null } {
  if (diffs > 0) return { result: 'complete', verdict: 'differ', reason: null };
  if (counts.undecided > 0) {
    return {
      result: 'complete',
      verdict: 'undecided',
      reason: `${counts.undecided} records could not be decided`,
    };
  }
  return { result: 'complete', verdict: 'match', reason: null };
}
