import { readWindow } from '../reconcile/read-window.ts';
import type { Window } from '../reconcile/record.ts';
import { chunks, scheduledWindow } from '../reconcile/window.ts';
import { adoptSuspects } from '../store/adopt-suspects.ts';
import { moveCoverage, readCoverage } from '../store/coverage.ts';
import { inTransaction } from '../store/database.ts';
import { NO_COUNTS, type Run, type RunCounts, saveChunk, saveRunWindow } from '../store/runs.ts';
import { insertSuspects, insertUndecided, nextSuspectDue } from '../store/suspects.ts';
import type { ReconcileDeps } from './reconcile-window.ts';

/**
 * Reads the run's window chunk by chunk, each with one commit of its suspects and the coverage, and takes over what
 * no reading finds. Gives the pause until the first suspect is due; null when there is none.
 */
export async function readChunks(deps: ReconcileDeps, run: Run, signal: AbortSignal): Promise<number | null> {
  const { db, pair } = deps;
  const window = run.window ?? (await chooseWindow(deps, run, signal));
  let counts = run.counts;
  for (const chunk of chunks(window, pair.config.window.chunk)) {
    if (run.readTo !== null && chunk.to <= run.readTo) continue;
    counts = await readChunk(deps, run, chunk, counts, signal);
  }
  await inTransaction(db, (trx) => adoptSuspects(trx, run, window));
  return nextSuspectDue(db, run.id);
}

async function readChunk(
  deps: ReconcileDeps,
  run: Run,
  chunk: Window,
  before: RunCounts,
  signal: AbortSignal,
): Promise<RunCounts> {
  const { db, pair } = deps;
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
  const counts = addCounts(before, { ...NO_COUNTS, ...result.counts, undecided: 0 });
  await inTransaction(db, async (trx) => {
    await insertSuspects(trx, { run, window: chunk }, result.suspects, pair.config.recheck.delay);
    await insertUndecided(trx, { run, window: chunk }, result.undecided);
    await saveChunk(trx, run, { readTo: chunk.to, counts, plan: result.plan });
    if (run.movesCoverage)
      await moveCoverage(trx, run.reconciliation, chunk, { founds: run.trigger === 'schedule' });
    await deps.checkpoint('before-commit');
  });
  return counts;
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
  await saveRunWindow(db, run, chosen.window, chosen.capped ? chosen.heldBackMs : null);
  return chosen.window;
}

function addCounts(a: RunCounts, b: RunCounts): RunCounts {
  const names = Object.keys(NO_COUNTS) as (keyof RunCounts)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as unknown as RunCounts;
}
