import {
  type Compensation,
  changeState,
  lockDiff,
  noteUndecided,
  UNDECIDED_SINCE,
} from '../store/compensations.ts';
import { inTransaction } from '../store/database.ts';
import { closeDiff, recordDiffEvent } from '../store/diffs.ts';
import { gateOutage } from '../store/gates.ts';
import { handOver } from './give-up.ts';
import type { RepairRoute, SendDeps } from './run-compensation.ts';

/** What a look decided about a compensation, as it is stored. */

const AFTER_FAILED_LOOK_MS = 5_000;

/** Before a send: the sides agree, so nothing is sent. */
export function recordHealed(deps: SendDeps, claimed: Compensation): Promise<void> {
  return endEqual(deps, claimed, 'healed', 'the sides agree; nothing was sent');
}

/** After a send: the sides agree, so it took. */
export function recordSeen(deps: SendDeps, row: Compensation): Promise<void> {
  return endEqual(deps, row, 'verified', 'a look after the send found the sides equal');
}

async function endEqual(
  deps: SendDeps,
  row: Compensation,
  result: 'healed' | 'verified',
  reason: string,
): Promise<void> {
  const type = result === 'healed' ? 'look-equal' : 'seen';
  const ended = await inTransaction(deps.db, async (trx) => {
    await lockDiff(trx, row.diffId);
    if (!(await changeState(trx, { from: row, event: { type } }))) return false;
    await closeDiff(trx, row.diffId, { state: result, by: 'trueup', reason });
    return true;
  });
  if (ended) deps.onEnded({ compensation: row, result });
}

/**
 * Before a send: no look could say whether it is needed, so it is not sent. Tried again soon; to a person when all
 * looks of `giveUpAfter` said no more. What a person held in between does not count.
 */
export async function recordUndecided(
  deps: SendDeps,
  claimed: Compensation,
  route: RepairRoute,
  why: string,
): Promise<void> {
  const { giveUpAfter } = route.target;
  if (claimed.undecidedForMs !== null && claimed.undecidedForMs >= giveUpAfter) {
    const { releasedMsAgo } = await gateOutage(deps.db, route.gate, giveUpAfter);
    if ((releasedMsAgo ?? giveUpAfter) >= giveUpAfter) return handOver(deps, claimed, 'unreadable', why);
  }
  const deferred = await changeState(deps.db, {
    from: claimed,
    event: { type: 'defer' },
    dueInMs: AFTER_FAILED_LOOK_MS,
    detail: why,
    values: { undecided_since: deps.db.raw(UNDECIDED_SINCE) },
  });
  // The look took so long that the row went back to the ledger meanwhile; its clock runs all the same.
  if (!deferred) await noteUndecided(deps.db, claimed.id);
}

/** An unknown send that rule 6.10 allows to repeat goes back to the ledger. */
export async function recordResend(deps: SendDeps, row: Compensation): Promise<void> {
  await inTransaction(deps.db, async (trx) => {
    const values = { waiting_since: trx.raw('clock_timestamp()'), undecided_since: null };
    if (!(await changeState(trx, { from: row, event: { type: 'resend' }, values }))) return;
    await recordDiffEvent(trx, { diffId: row.diffId, compensationId: row.id, event: 'resend' });
  });
}
