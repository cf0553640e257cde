import { sentence } from '../compensate/escalate.ts';
import type { EscalationReason } from '../compensate/state.ts';
import type { Target } from '../config/schema.ts';
import { type Compensation, changeState } from '../store/compensations.ts';
import { inTransaction } from '../store/database.ts';
import { recordDiffEvent } from '../store/diffs.ts';
import { waitingSince } from '../store/dispatchable.ts';
import { gateOutage } from '../store/gates.ts';
import { sentWithout } from '../store/sent.ts';
import type { SendDeps } from './run-compensation.ts';

/** Most rows of one round and target. */
export const GIVE_UP_BATCH = 500;

/**
 * Hands compensations to a person that waited for a target during `giveUpAfter` of its outage (rule 6.12), whether or
 * not they were ever tried. A timer does it, since while a gate is closed nothing is dispatched that could notice.
 * Returns how many it handed over.
 */
export async function giveUpWaiting(
  deps: SendDeps,
  targets: Readonly<Record<string, Target>>,
): Promise<number> {
  let count = 0;
  for (const [name, target] of Object.entries(targets)) {
    const { held, givenUpSinceMs } = await gateOutage(deps.db, target.upstream ?? name, target.giveUpAfter);
    // A hold is a person's doing, not the target's.
    if (held || givenUpSinceMs === null) continue;
    const rows = await waitingSince(deps.db, name, givenUpSinceMs, GIVE_UP_BATCH);
    for (const row of rows) await handOver(deps, row, 'gave-up');
    count += rows.length;
  }
  return count;
}

/**
 * Hands sent compensations to a person when their reconciliation is no longer configured: nobody can look any more.
 * (What was not sent yet is dispatched, and ends there as unplannable.) Returns how many it handed over.
 */
export async function endOrphans(deps: SendDeps, reconciliations: readonly string[]): Promise<number> {
  const rows = await sentWithout(deps.db, reconciliations, GIVE_UP_BATCH);
  for (const row of rows) await handOver(deps, row, 'unplannable');
  return rows.length;
}

/** Ends a compensation in front of a person. What it left unknown stays so (rule 6.6). */
export async function handOver(
  deps: SendDeps,
  row: Compensation,
  reason: EscalationReason,
  detail = sentence(reason),
): Promise<void> {
  const event = { type: 'escalate', reason } as const;
  const ended = await inTransaction(deps.db, async (trx) => {
    if (!(await changeState(trx, { from: row, event, detail }))) return false;
    const { diffId, id: compensationId } = row;
    await recordDiffEvent(trx, { diffId, compensationId, event: 'escalated', detail: { reason } });
    return true;
  });
  if (ended) deps.onEnded({ compensation: row, result: reason });
}
