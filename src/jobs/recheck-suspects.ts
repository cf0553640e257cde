import { lookBoth } from '../reconcile/look.ts';
import { type RecheckPolicy, recheck } from '../reconcile/recheck.ts';
import { keyText, type Verdict } from '../reconcile/record.ts';
import { inTransaction, storeClock } from '../store/database.ts';
import { lapseDecisions } from '../store/decisions.ts';
import { closeSeenEqual } from '../store/diffs.ts';
import type { Run } from '../store/runs.ts';
import {
  dueSuspects,
  endSuspects,
  nextSuspectDue,
  type SuspectEnd,
  type WaitingSuspect,
} from '../store/suspects.ts';
import type { ReconcileDeps } from './reconcile-window.ts';

const BATCH = 1000;

/**
 * Looks again at the suspects that are due, on both sides (rule 5.11). Where the sides agree, the suspect has healed,
 * an open diff of its key closes, and a decision on it has ended: the records are not what it was taken on. Gives the
 * pause until the next suspect is due; null when none waits.
 */
export async function recheckSuspects(
  deps: ReconcileDeps,
  run: Run,
  signal: AbortSignal,
): Promise<number | null> {
  const { db, pair } = deps;
  const policy = { delayMs: pair.config.recheck.delay, looks: pair.config.recheck.looks };
  for (;;) {
    const suspects = await dueSuspects(db, run.id, BATCH);
    if (suspects.length === 0) return nextSuspectDue(db, run.id);
    const seenAt = await storeClock(db);
    const keys = suspects.map((suspect) => suspect.key);
    const verdicts = await lookBoth(keys, pair.source, pair.downstream, deps.look, signal);
    await deps.checkpoint('after-recheck');
    const equal = keys.filter((key) => verdicts.get(keyText(key))?.verdict === 'match');
    await inTransaction(db, async (trx) => {
      await endSuspects(
        trx,
        suspects.map((suspect) => endOf(suspect, verdicts.get(keyText(suspect.key)), policy)),
      );
      await closeSeenEqual(trx, run.reconciliation, equal, seenAt);
      await lapseDecisions(trx, run.reconciliation, equal, 'a later look found the sides equal');
    });
  }
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
