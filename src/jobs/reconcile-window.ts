import { TrueupError } from '../error.ts';
import type { Logger } from '../observe/logger.ts';
import type { CompareContext } from '../reconcile/compare-records.ts';
import { SideError } from '../reconcile/side.ts';
import { type Db, inTransaction } from '../store/database.ts';
import { finishRun, type Run, RunTakenOver, yieldRun } from '../store/runs.ts';
import { countSuspects, leaveUndecided } from '../store/suspects.ts';
import { concludeRun } from './conclude-run.ts';
import type { Pair } from './pair.ts';
import { readChunks } from './read-chunks.ts';
import { recheckSuspects } from './recheck-suspects.ts';
import { keepingLease } from './run-lease.ts';
import { tellPlanned } from './tell-planned.ts';
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
const UNREADABLE = new Set(['TRU_SIDE_ORDER', 'TRU_NO_WINDOW', 'TRU_NO_MERGE', 'TRU_TOO_MANY_SUSPECTS']);

export async function reconcileStep(deps: ReconcileDeps, run: Run, signal: AbortSignal): Promise<void> {
  try {
    await keepingLease(deps, run, signal, (inner) => step(deps, run, inner));
  } catch (error) {
    if (signal.aborted || error instanceof RunTakenOver) throw error;
    await failed(deps, run, error instanceof Error ? error : new Error(String(error)));
  }
}

async function step(deps: ReconcileDeps, run: Run, signal: AbortSignal): Promise<void> {
  if (run.phase === 'reading') await afterLooks(deps, run, await readChunks(deps, run, signal));
  else if (run.phase === 'rechecking') await afterLooks(deps, run, await recheckSuspects(deps, run, signal));
  else if (run.phase === 'concluding') await conclude(deps, run);
}

/** Suspects wait in the store, not in a worker; when none waits, the run concludes. */
function afterLooks({ db }: ReconcileDeps, run: Run, wait: number | null): Promise<void> {
  if (wait === null) return yieldRun(db, run, { phase: 'concluding', afterMs: 0 });
  return yieldRun(db, run, { phase: 'rechecking', afterMs: wait });
}

async function conclude(deps: ReconcileDeps, run: Run): Promise<void> {
  const { counts, heldFor } = await concludeRun(deps, run);
  await tellPlanned(deps, run);
  deps.onEnded(heldFor === null ? 'complete' : 'held');
  const fact = { run: run.id, reconciliation: run.reconciliation, counts };
  if (heldFor === null) deps.logger.info({ event: 'run.done', ...fact }, 'run finished');
  else deps.logger.info({ event: 'run.held', ...fact }, `run on hold: ${heldFor}`);
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
