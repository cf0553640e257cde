import type { CompareContext } from '../reconcile/compare-records.ts';
import { lookBoth } from '../reconcile/look.ts';
import { keyText } from '../reconcile/record.ts';
import { changeState, lockDiff, openCompensations } from '../store/compensations.ts';
import { type Db, inTransaction } from '../store/database.ts';
import { claimRelooks, closeDiff, type OpenDiff, relookSooner } from '../store/diffs.ts';
import type { Pair } from './pair.ts';

/** Most rows of one round; a full round is followed by the next at once. */
export const RELOOK_BATCH = 500;
const AFTER_FAILED_LOOK_MS = 60_000;
/** States from which a repair is simply no longer needed. What was sent is settled by its own looks. */
const NOT_SENT = new Set(['planned', 'held', 'ready', 'retrying', 'deferred']);

/**
 * Open diffs are looked at again every `relook`, whatever the window, escalated ones too, and close by themselves
 * when the sides agree (rule 5.11). Returns how many it looked at.
 */
export async function relookDiffs(
  db: Db,
  pair: Pair,
  look: CompareContext,
  signal: AbortSignal,
): Promise<number> {
  const diffs = await claimRelooks(db, pair.name, RELOOK_BATCH, pair.config.relook);
  if (diffs.length === 0) return 0;
  const keys = diffs.map((diff) => diff.key);
  let verdicts: Awaited<ReturnType<typeof lookBoth>>;
  try {
    verdicts = await lookBoth(keys, pair.source, pair.downstream, look, signal);
  } catch (error) {
    await relookSooner(
      db,
      diffs.map(({ id }) => id),
      AFTER_FAILED_LOOK_MS,
    );
    throw error;
  }
  for (const diff of diffs) {
    if (verdicts.get(keyText(diff.key))?.verdict === 'match') await closeHealed(db, diff);
  }
  return diffs.length;
}

async function closeHealed(db: Db, diff: OpenDiff): Promise<void> {
  await inTransaction(db, async (trx) => {
    await lockDiff(trx, diff.id);
    const open = await openCompensations(trx, diff.id);
    if (open.some((compensation) => !NOT_SENT.has(compensation.state))) return;
    for (const compensation of open)
      await changeState(trx, { from: compensation, event: { type: 'look-equal' } });
    await closeDiff(trx, diff.id, {
      state: 'healed',
      by: 'trueup',
      reason: 'a later look found the sides equal',
    });
  });
}
