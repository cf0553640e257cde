import { planCompensation } from '../compensate/plan.ts';
import { settle } from '../compensate/settle.ts';
import type { CompareContext } from '../reconcile/compare-records.ts';
import { lookBoth } from '../reconcile/look.ts';
import { type Finding, keyText, type Verdict } from '../reconcile/record.ts';
import { SideError } from '../reconcile/side.ts';
import { attemptOutcome } from '../store/attempts.ts';
import {
  type Compensation,
  changeState,
  compensationHistory,
  insertCompensations,
  lockDiff,
} from '../store/compensations.ts';
import { type Db, inTransaction, only, storeClock } from '../store/database.ts';
import { closeDiff, recordDiffEvent } from '../store/diffs.ts';
import { claimSettles, postponeSettle } from '../store/sent.ts';
import { handOver } from './give-up.ts';
import type { Pair } from './pair.ts';
import type { EndedByLook, RepairRoute, SendDeps } from './run-compensation.ts';

/** Most rows of one round; a full round is followed by the next at once. */
export const SETTLE_BATCH = 200;
const AFTER_FAILED_LOOK_MS = 2_000;
/** How long a send without a repair in the configuration has to become visible. */
const WITHOUT_ROUTE_MS = 60_000;
const NOT_TAKEN = 'accepted, not taken; one more round';

/**
 * Looks again at what was sent: the only thing that settles an accepted or unknown outcome (rules 6.9 to 6.11).
 * Returns how many rows it looked at; the caller asks again at once when that is a full batch.
 */
export async function settleDue(
  deps: SendDeps,
  pair: Pair,
  look: CompareContext,
  signal: AbortSignal,
): Promise<number> {
  const rows = await claimSettles(deps.db, pair.name, SETTLE_BATCH, deps.times.settleClaim);
  if (rows.length === 0) return 0;
  let verdicts: ReadonlyMap<string, Verdict>;
  try {
    const keys = rows.map((row) => row.key);
    verdicts = await lookBoth(keys, pair.source, pair.downstream, look, signal);
  } catch (error) {
    if (!(error instanceof SideError)) throw error;
    deps.logger.warn(
      { event: 'look.failed', reconciliation: pair.name, err: error },
      'looks after sends failed',
    );
    verdicts = new Map();
  }
  await deps.checkpoint('before-settle');
  for (const row of rows) await settleOne(deps, pair, row, verdicts.get(keyText(row.key)));
  return rows.length;
}

async function settleOne(
  deps: SendDeps,
  pair: Pair,
  row: Compensation,
  verdict: Verdict | undefined,
): Promise<void> {
  // Equal sides settle it, whatever the configuration says by now.
  if (verdict?.verdict === 'match') return seen(deps, row);
  const route = deps.route(row);
  if (route === undefined) return withoutRoute(deps, row);
  const decision = settle({
    state: row.state === 'applied' ? 'applied' : 'unknown',
    look: seenAs(verdict),
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
  const from = { id: row.id, state: row.state, attemptNumber: row.attemptNumber };
  switch (decision.event) {
    case 'look-later':
      return postponeSettle(deps.db, row.id, decision.afterMs);
    case 'seen':
      return seen(deps, row);
    case 'resend':
      await inTransaction(deps.db, async (trx) => {
        if (!(await changeState(trx, { from, event: { type: 'resend' } }))) return;
        await recordDiffEvent(trx, { diffId: row.diffId, compensationId: row.id, event: 'resend' });
      });
      return;
    case 'replaced':
      return verdict?.verdict === 'differs' ? anotherRound(deps, pair, row, verdict.finding) : undefined;
    case 'escalate':
      return handOver(deps, row, decision.reason);
  }
}

function seen(deps: SendDeps, row: Compensation): Promise<void> {
  return ended(deps, row, 'verified', async (trx) => {
    await lockDiff(trx, row.diffId);
    const from = { id: row.id, state: row.state, attemptNumber: row.attemptNumber };
    if (!(await changeState(trx, { from, event: { type: 'seen' } }))) return false;
    const reason = 'a look after the send found the sides equal';
    await closeDiff(trx, row.diffId, { state: 'verified', by: 'trueup', reason });
    return true;
  });
}

/** The active configuration no longer has this repair, and the sides differ: nobody is left to decide but a person. */
async function withoutRoute(deps: SendDeps, row: Compensation): Promise<void> {
  const settled = (row.lastSentMsAgo ?? 0) > WITHOUT_ROUTE_MS && (await deps.isActive());
  return settled ? handOver(deps, row, 'unplannable') : postponeSettle(deps.db, row.id, AFTER_FAILED_LOOK_MS);
}

async function ended(
  deps: SendDeps,
  compensation: Compensation,
  result: EndedByLook['result'],
  end: (trx: Db) => Promise<boolean>,
): Promise<void> {
  if (await inTransaction(deps.db, end)) deps.onEnded({ compensation, result });
}

function seenAs(verdict: Verdict | undefined): 'equal' | 'differs' | 'failed' {
  if (verdict === undefined || verdict.verdict === 'undecided') return 'failed';
  return verdict.verdict === 'match' ? 'equal' : 'differs';
}

/** Rule 6.11: one more round, not more, and none after "accepted, not final", which is never sent again. */
async function roundsLeft(db: Db, row: Compensation, wanted: RepairRoute['repair']['onNotTaken']) {
  if (wanted === 'escalate' || row.state !== 'applied') return 'escalate';
  if ((await attemptOutcome(db, row.id, row.attemptNumber)) === 'pending') return 'escalate';
  return inTransaction(db, async (trx) => {
    const history = await compensationHistory(trx, row.idempotencyKey);
    return history.some((past) => past.escalationDetail === NOT_TAKEN) ? 'escalate' : 'resend';
  });
}

async function anotherRound(deps: SendDeps, pair: Pair, row: Compensation, finding: Finding): Promise<void> {
  const now = await storeClock(deps.db);
  const reconciliation = { name: pair.name, config: pair.config };
  const revision = row.revision + 1;
  const plan = planCompensation({
    finding,
    reconciliation,
    now,
    revision,
    traceId: row.traceId,
    byPerson: true,
  });
  if (plan.plan === 'report') return handOver(deps, row, 'not-taken');
  await inTransaction(deps.db, async (trx) => {
    const event = { type: 'replaced' } as const;
    if (!(await changeState(trx, { from: row, event, detail: NOT_TAKEN }))) return;
    const next = { ...row, ...plan, configRevision: deps.configRevision, revision };
    const id = only(await insertCompensations(trx, [next]));
    await recordDiffEvent(trx, {
      diffId: row.diffId,
      compensationId: id,
      event: 'planned',
      detail: { why: NOT_TAKEN },
    });
  });
}
