import { planCompensation } from '../compensate/plan.ts';
import type { Finding } from '../reconcile/record.ts';
import { type Compensation, changeState, insertCompensations, lockDiff } from '../store/compensations.ts';
import { inTransaction, only, storeClock } from '../store/database.ts';
import { recordDiffEvent } from '../store/diffs.ts';
import { handOver } from './give-up.ts';
import type { Pair } from './pair.ts';
import { planDiff } from './plan-findings.ts';
import type { SendDeps } from './run-compensation.ts';

/** The one place where a compensation's looks lead to another plan. */

/** Whether what a look shows is what this compensation was planned for (rule 6.2). */
export function isPlanned(claimed: Compensation, pair: Pair, finding: Finding): boolean {
  const plan = planCompensation({
    finding,
    reconciliation: { name: pair.name, config: pair.config },
    // `maxAge` was weighed when it was planned.
    now: claimed.createdAt,
    byPerson: true,
  });
  return plan.plan === 'compensate' && plan.fingerprint === claimed.fingerprint;
}

/** The records changed since the plan: it is replaced by one for what they are now. */
export async function replaceChanged(
  deps: SendDeps,
  claimed: Compensation,
  pair: Pair,
  finding: Finding,
): Promise<void> {
  const { diffId, traceId, runId } = claimed;
  await inTransaction(deps.db, async (trx) => {
    await lockDiff(trx, diffId);
    const event = { type: 'look-changed' } as const;
    if (!(await changeState(trx, { from: claimed, event, detail: 'the records changed' }))) return;
    await recordDiffEvent(trx, { diffId, compensationId: claimed.id, event: 'superseded' });
    const { configRevision } = deps;
    const context = { pair, now: await storeClock(trx), runId, configRevision };
    await planDiff(trx, { id: diffId, traceId, finding }, context);
  });
}

/** Accepted and not taken: one more round under the next revision (rule 6.11). */
export async function anotherRound(
  deps: SendDeps,
  row: Compensation,
  pair: Pair,
  finding: Finding,
): Promise<void> {
  const revision = row.revision + 1;
  const plan = planCompensation({
    finding,
    reconciliation: { name: pair.name, config: pair.config },
    now: await storeClock(deps.db),
    revision,
    traceId: row.traceId,
    byPerson: true,
  });
  if (plan.plan === 'report') return handOver(deps, row, 'not-taken');
  const why = 'accepted, not taken; one more round';
  await inTransaction(deps.db, async (trx) => {
    await lockDiff(trx, row.diffId);
    const event = { type: 'replaced' } as const;
    if (!(await changeState(trx, { from: row, event, detail: why, values: { not_taken: true } }))) return;
    const next = { ...row, ...plan, configRevision: deps.configRevision, revision };
    const id = only(await insertCompensations(trx, [next]));
    await recordDiffEvent(trx, {
      diffId: row.diffId,
      compensationId: id,
      event: 'planned',
      detail: { why },
    });
  });
}
