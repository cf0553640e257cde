import { nextRevision } from '../compensate/identity.ts';
import { type CompensationPlan, planCompensation } from '../compensate/plan.ts';
import type { Instant } from '../reconcile/instant.ts';
import type { DiffKind } from '../reconcile/record.ts';
import { compensationHistory, openFingerprints, usedKeys } from '../store/compensations.ts';
import { type Db, storeClock } from '../store/database.ts';
import { insertPlan, openDiffsOfRun, type PlannableDiff } from '../store/plans.ts';
import type { Pair } from './pair.ts';
import { asHistory } from './plan-findings.ts';

const PAGE = 500;

type Foreseen = 'reported' | 'underWay' | 'needPerson' | { readonly target: string };

/**
 * Stores what a run in mode `compensate` would send for the diffs of this one, by the same rules, without a row in the
 * ledger. Part of the transaction that concludes the run.
 */
export async function storePlan(trx: Db, run: { id: string }, pair: Pair): Promise<void> {
  const now = await storeClock(trx);
  const diffIds: string[] = [];
  const byKind: Partial<Record<DiffKind, number>> = {};
  const byTarget: Record<string, number> = {};
  const left = { reported: 0, underWay: 0, needPerson: 0 };
  for (let after = '0'; ; ) {
    const diffs = await openDiffsOfRun(trx, run.id, { limit: PAGE, after });
    const foreseen = await foresee(trx, diffs, pair, now);
    for (const [index, diff] of diffs.entries()) {
      const what = foreseen[index];
      if (what === undefined) continue;
      if (typeof what === 'string') {
        left[what] += 1;
        continue;
      }
      diffIds.push(diff.id);
      const { kind } = diff.finding;
      byKind[kind] = (byKind[kind] ?? 0) + 1;
      byTarget[what.target] = (byTarget[what.target] ?? 0) + 1;
    }
    const last = diffs.at(-1);
    if (last === undefined || diffs.length < PAGE) break;
    after = last.id;
  }
  await insertPlan(trx, {
    runId: run.id,
    reconciliation: pair.name,
    summary: { byKind, byTarget, left },
    diffIds,
  });
}

async function foresee(
  trx: Db,
  diffs: readonly PlannableDiff[],
  pair: Pair,
  now: Instant,
): Promise<Foreseen[]> {
  const plans = diffs.map(({ finding, traceId }) =>
    planCompensation({ finding, reconciliation: { name: pair.name, config: pair.config }, now, traceId }),
  );
  const keys = plans.flatMap((plan) => (plan.plan === 'compensate' ? [plan.idempotencyKey] : []));
  const used = await usedKeys(trx, keys);
  const underWay = await openFingerprints(
    trx,
    diffs.map(({ id }) => id),
  );
  const foreseen: Foreseen[] = [];
  for (const [index, plan] of plans.entries()) {
    if (plan.plan === 'report') foreseen.push('reported');
    else if (underWay.has(diffs[index]?.id ?? '')) foreseen.push('underWay');
    else if (used.has(plan.idempotencyKey)) foreseen.push(await fromHistory(trx, plan, pair));
    else foreseen.push({ target: plan.target });
  }
  return foreseen;
}

async function fromHistory(
  trx: Db,
  plan: Extract<CompensationPlan, { plan: 'compensate' }>,
  pair: Pair,
): Promise<Foreseen> {
  const history = (await compensationHistory(trx, plan.idempotencyKey)).map(asHistory);
  const { fingerprint, target } = plan;
  const next = nextRevision({ history, fingerprint, relapseMs: pair.config.relapse, byPerson: false });
  if (next.kind === 'next') return { target };
  return history.some(({ endedMsAgo }) => endedMsAgo === null) ? 'underWay' : 'needPerson';
}
