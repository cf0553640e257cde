import { knownNames } from '../config/known-names.ts';
import { EXIT, TrueupError } from '../error.ts';
import { recordAudit } from '../store/audit.ts';
import { lockPlanning, openFingerprints } from '../store/compensations.ts';
import { type Db, inTransaction, storeClock } from '../store/database.ts';
import {
  type DiffOfPlan,
  endPlan,
  lockDiffsOfPlan,
  lockPlan,
  lockRunOfPlan,
  type PlanOutcome,
  type RunOfPlan,
  releaseGuard,
  type StoredPlan,
} from '../store/plans.ts';
import { setRunWatermark } from '../store/run-gate.ts';
import type { Actor } from './operator.ts';
import type { Pair } from './pair.ts';
import { type PlanContext, planDiffs } from './plan-findings.ts';

const PAGE = 500;

export interface ExecutePlanDeps {
  readonly db: Db;
  readonly pairs: ReadonlyMap<string, Pair>;
  readonly configRevision: number | null;
}

/**
 * Puts the compensations of a stored plan into the ledger, in one transaction with the audit: those whose records are
 * still the planned ones, and which nobody has decided on or begun to repair. They belong to the run that made the
 * plan. Executing is also the release of what the guard saw in that run.
 */
export async function executePlan(
  deps: ExecutePlanDeps,
  id: string,
  order: { actor: Actor; watermark: number | null },
): Promise<{ runId: string; outcome: PlanOutcome }> {
  return inTransaction(deps.db, async (trx) => {
    const plan = await lockPlan(trx, id);
    if (plan === null) throw noPlan(id);
    const run = await lockRunOfPlan(trx, plan.runId);
    refuseEnded(plan, run);
    const pair = deps.pairs.get(plan.reconciliation);
    if (pair === undefined) {
      throw new TrueupError(
        'TRU_UNKNOWN_RECONCILIATION',
        `the configuration no longer has the reconciliation "${plan.reconciliation}" of plan ${id}`,
        {
          exit: EXIT.usage,
          hint: knownNames(plan.reconciliation, [...deps.pairs.keys()], 'reconciliations'),
        },
      );
    }
    if (order.watermark !== null) await setRunWatermark(trx, plan.runId, order.watermark);
    await lockPlanning(trx, plan.reconciliation);
    const { configRevision } = deps;
    const context = { pair, now: await storeClock(trx), runId: plan.runId, configRevision };
    const outcome = await insertAll(trx, plan, context);
    const reason = `plan ${plan.id} was executed by ${order.actor.name}`;
    await releaseGuard(trx, plan.runId, reason);
    await endPlan(trx, plan.id, order.actor.name, outcome);
    await recordAudit(trx, {
      actor: order.actor.name,
      origin: order.actor.origin,
      action: 'plan.execute',
      subject: `plan ${plan.id}`,
      reason: null,
      before: { run: plan.runId, guard: run.guard?.pattern ?? null, watermark: run.watermark },
      after: { ...outcome, watermark: order.watermark ?? run.watermark },
    });
    return { runId: plan.runId, outcome };
  });
}

export function noPlan(id: string): TrueupError {
  return new TrueupError('TRU_NO_PLAN', `there is no plan ${id}`, {
    exit: EXIT.usage,
    hint: 'make one with: trueup run NAME --last 3h --mode plan',
  });
}

/** Throws when a plan cannot be executed (any more). */
export function refuseEnded(plan: StoredPlan, run: Pick<RunOfPlan, 'result'>): void {
  const why =
    plan.executedAt !== null
      ? `was executed already, at ${plan.executedAt} by ${plan.executedBy}`
      : plan.expired
        ? `expired at ${plan.expiresAt}`
        : run.result === 'discarded'
          ? `belongs to run ${plan.runId}, which was discarded`
          : null;
  if (why === null) return;
  throw new TrueupError('TRU_PLAN_ENDED', `plan ${plan.id} ${why}`, {
    exit: EXIT.usage,
    hint: `make a new one with: trueup run ${plan.reconciliation} --mode plan and the window`,
  });
}

type Skipped = { -readonly [why in keyof PlanOutcome['skipped']]: number };

async function insertAll(trx: Db, plan: StoredPlan, context: PlanContext): Promise<PlanOutcome> {
  const skipped: Skipped = { changed: 0, decided: 0, underWay: 0, notPlanned: 0 };
  let planned = 0;
  for (let after = '0'; ; ) {
    const diffs = await lockDiffsOfPlan(trx, plan.id, { limit: PAGE, after });
    const ids = diffs.map(({ id }) => id);
    const before = await openFingerprints(trx, ids);
    const chosen = diffs.filter((diff) => {
      const why = before.has(diff.id) ? 'underWay' : whySkipped(diff);
      if (why !== null) skipped[why] += 1;
      return why === null;
    });
    await planDiffs(trx, chosen, context);
    const open = await openFingerprints(
      trx,
      chosen.map(({ id }) => id),
    );
    planned += open.size;
    skipped.notPlanned += chosen.length - open.size;
    const last = ids.at(-1);
    if (last === undefined || diffs.length < PAGE) return { planned, skipped };
    after = last;
  }
}

function whySkipped({ state, changed }: DiffOfPlan): 'decided' | 'changed' | null {
  if (state === 'resolved' || state === 'dismissed' || state === 'failed') return 'decided';
  return state !== 'open' || changed ? 'changed' : null;
}
