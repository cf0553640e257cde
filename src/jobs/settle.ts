import { settle } from '../compensate/settle.ts';
import type { EscalationReason } from '../compensate/state.ts';
import type { CompareContext } from '../reconcile/compare-records.ts';
import { lookBoth } from '../reconcile/look.ts';
import { type Finding, keyText, type Verdict } from '../reconcile/record.ts';
import { SideError } from '../reconcile/side.ts';
import { attemptOutcome } from '../store/attempts.ts';
import { type Compensation, compensationHistory } from '../store/compensations.ts';
import type { Db } from '../store/database.ts';
import { claimSettles } from '../store/sent.ts';
import type { Pair } from './pair.ts';
import type { RepairRoute, SendDeps } from './run-compensation.ts';

/** Most rows of one round; a full round is followed by the next at once. */
export const SETTLE_BATCH = 200;
const AFTER_FAILED_LOOK_MS = 2_000;
/** How long a send without a repair in the configuration has to become visible. */
const WITHOUT_ROUTE_MS = 60_000;

/** What the latest look says about a sent compensation. */
export type Settled = { readonly row: Compensation } & (
  | { readonly event: 'seen' }
  | { readonly event: 'look-later'; readonly afterMs: number; readonly undecided: boolean }
  | { readonly event: 'resend' }
  | { readonly event: 'replaced'; readonly finding: Finding }
  | { readonly event: 'escalate'; readonly reason: EscalationReason; readonly detail?: string }
);

/**
 * Looks again at what was sent: the only thing that settles an accepted or unknown outcome (rules 6.9 to 6.11).
 * Claims at most `SETTLE_BATCH` rows and says what each of them came to.
 */
export async function lookAtSent(
  deps: SendDeps,
  pair: Pair,
  look: CompareContext,
  signal: AbortSignal,
): Promise<Settled[]> {
  const rows = await claimSettles(deps.db, pair.name, SETTLE_BATCH, deps.times.settleClaim);
  if (rows.length === 0) return [];
  let verdicts: ReadonlyMap<string, Verdict> = new Map();
  let failure = 'the look gave no answer';
  try {
    const keys = rows.map((row) => row.key);
    verdicts = await lookBoth(keys, pair.source, pair.downstream, look, signal);
  } catch (error) {
    if (!(error instanceof SideError)) throw error;
    failure = error.message;
    deps.logger.warn(
      { event: 'look.failed', reconciliation: pair.name, err: error },
      'looks after sends failed',
    );
  }
  const settled: Settled[] = [];
  for (const row of rows)
    settled.push(await settleOne(deps, pair, row, verdicts.get(keyText(row.key)), failure));
  return settled;
}

async function settleOne(
  deps: SendDeps,
  pair: Pair,
  row: Compensation,
  verdict: Verdict | undefined,
  failure: string,
): Promise<Settled> {
  // Equal sides settle it, whatever the configuration says by now.
  if (verdict?.verdict === 'match') return { row, event: 'seen' };
  const route = deps.route(row);
  if (route === undefined) return withoutRoute(deps, row);
  const decision = settle({
    state: row.state === 'applied' ? 'applied' : 'unknown',
    look: verdict?.verdict === 'differs' ? 'differs' : 'failed',
    undecidedForMs: row.undecidedForMs ?? 0,
    giveUpAfterMs: route.target.giveUpAfter,
    sinceSendMs: row.lastSentMsAgo ?? 0,
    unknownForMs: row.unknownForMs ?? row.lastSentMsAgo ?? 0,
    target: {
      dedupes: route.target.idempotency.dedupes,
      keyRetentionMs: route.target.idempotency.keyRetention,
      appliesWithinMs: route.target.appliesWithin ?? null,
    },
    readLagMs: Math.max(pair.config.source.readLag, pair.config.downstream.readLag),
    verifyWithinMs: route.repair.verify.within,
    verifyEveryMs: route.repair.verify.every,
    onNotTaken: await roundsLeft(deps.db, row, route.repair.onNotTaken),
    attempts: row.attempts,
    maxAttempts: route.target.retry.attempts,
  });
  if (decision.event === 'look-later') return { row, ...decision, undecided: verdict?.verdict !== 'differs' };
  if (decision.event === 'replaced') {
    if (verdict?.verdict !== 'differs') throw new Error('only a look that differs leads to another round');
    return { row, ...decision, finding: verdict.finding };
  }
  if (decision.event === 'escalate' && decision.reason === 'unreadable')
    return { row, ...decision, detail: verdict?.verdict === 'undecided' ? verdict.reason : failure };
  return { row, ...decision };
}

/** The active configuration no longer has this repair, and the sides differ: nobody is left to decide but a person. */
async function withoutRoute(deps: SendDeps, row: Compensation): Promise<Settled> {
  const settled = (row.lastSentMsAgo ?? 0) > WITHOUT_ROUTE_MS && (await deps.isActive());
  if (settled) return { row, event: 'escalate', reason: 'unplannable' };
  return { row, event: 'look-later', afterMs: AFTER_FAILED_LOOK_MS, undecided: false };
}

/** Rule 6.11: one more round, not more, and none after "accepted, not final", which is never sent again. */
async function roundsLeft(db: Db, row: Compensation, wanted: RepairRoute['repair']['onNotTaken']) {
  if (wanted === 'escalate' || row.state !== 'applied') return 'escalate';
  if ((await attemptOutcome(db, row.id, row.attemptNumber)) === 'pending') return 'escalate';
  const history = await compensationHistory(db, row.idempotencyKey);
  return history.some((past) => past.notTaken) ? 'escalate' : 'resend';
}
