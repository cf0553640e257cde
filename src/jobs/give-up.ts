import { sentence } from '../compensate/escalate.ts';
import type { Target } from '../config/schema.ts';
import { changeState } from '../store/compensations.ts';
import { inTransaction } from '../store/database.ts';
import { recordDiffEvent } from '../store/diffs.ts';
import { deferredLongerThan } from '../store/dispatchable.ts';
import type { SendDeps } from './run-compensation.ts';

/** Most rows of one round and target. */
export const GIVE_UP_BATCH = 500;

/**
 * Hands deferred compensations to a person when their target stayed down for `giveUpAfter` (rule 6.12). A timer does
 * it, since while a gate is closed nothing is dispatched that could notice. Returns how many it handed over.
 */
export async function giveUpDeferred(
  deps: SendDeps,
  targets: Readonly<Record<string, Target>>,
): Promise<number> {
  let count = 0;
  for (const [name, target] of Object.entries(targets)) {
    const rows = await deferredLongerThan(deps.db, name, target.giveUpAfter, GIVE_UP_BATCH);
    for (const row of rows) {
      const event = { type: 'escalate', reason: 'gave-up' } as const;
      const ended = await inTransaction(deps.db, async (trx) => {
        if (!(await changeState(trx, { from: row, event, detail: sentence('gave-up') }))) return false;
        const detail = { reason: 'gave-up' };
        await recordDiffEvent(trx, {
          diffId: row.diffId,
          compensationId: row.id,
          event: 'escalated',
          detail,
        });
        return true;
      });
      if (ended) deps.onEnded({ compensation: row, result: 'gave-up' });
    }
    count += rows.length;
  }
  return count;
}
