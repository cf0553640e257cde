import { setTimeout as sleep } from 'node:timers/promises';
import { planCompensation } from '../compensate/plan.ts';
import type { Finding } from '../reconcile/record.ts';
import { SideError } from '../reconcile/side.ts';
import { type Compensation, changeState, lockDiff } from '../store/compensations.ts';
import { inTransaction, storeClock } from '../store/database.ts';
import { closeDiff, recordDiffEvent } from '../store/diffs.ts';
import { type Granted, grantSend } from '../store/gates.ts';
import { planDiff } from './plan-findings.ts';
import type { RepairRoute, SendDeps } from './run-compensation.ts';
import type { Place } from './turns.ts';

/** Longest wait for a slot within one turn; beyond it the row returns to the ledger. */
const LONGEST_WAIT_MS = 8_000;
const AFTER_FAILED_LOOK_MS = 5_000;

export interface GrantedSlot extends Granted {
  readonly finding: Finding;
  readonly waitedMs: number;
}

/** What the latest look showed, and when its reads began. */
interface Seen {
  readonly finding: Finding;
  readonly takenAtMs: number;
}

/**
 * A look when the turn is near, then the slot; the look again when it would be older than `look.maxAge` at the send
 * (rule 6.9). Null when this compensation's turn ended otherwise; its state says how. Leaves the place in any case.
 */
export async function lookAndAsk(
  deps: SendDeps,
  claimed: Compensation,
  route: RepairRoute,
  place: Place,
): Promise<GrantedSlot | null> {
  let sending = false;
  const since = performance.now();
  try {
    await place.near;
    const seen = await lookOrDefer(deps, claimed, route);
    if (seen === null) return null;
    await place.turn;
    const granted = await ask(deps, claimed, route, seen);
    sending = granted !== null;
    return granted === null ? null : { ...granted, waitedMs: performance.now() - since };
  } finally {
    place.leave(sending);
  }
}

async function ask(
  deps: SendDeps,
  claimed: Compensation,
  route: RepairRoute,
  first: Seen,
): Promise<Omit<GrantedSlot, 'waitedMs'> | null> {
  const maxAgeMs = route.pair.config.look.maxAge - deps.timing.horizonMs - deps.timing.validMs;
  const since = performance.now();
  let seen = first;
  for (;;) {
    if (performance.now() - seen.takenAtMs > maxAgeMs) {
      const again = await lookOrDefer(deps, claimed, route);
      if (again === null) return null;
      seen = again;
    }
    if (deps.draining.aborted) return putBack(deps, claimed, 0);
    await route.sender.warm();
    const answer = await grantSend(deps.db, {
      compensation: claimed,
      gate: route.gate,
      target: route.target,
      worker: deps.workerId,
      timing: deps.timing,
      leaseMarginMs: deps.times.sendMargin,
    });
    switch (answer.kind) {
      case 'gone':
        return null;
      case 'granted':
        return { ...answer, finding: seen.finding };
      case 'open':
        await changeState(deps.db, {
          from: claimed,
          event: { type: 'defer' },
          dueInMs: answer.delayMs,
          values: { target_down_since: deps.db.raw('coalesce(target_down_since, clock_timestamp())') },
        });
        return null;
      case 'held':
        return putBack(deps, claimed, 1000);
      case 'wait':
        if (performance.now() - since + answer.delayMs > LONGEST_WAIT_MS)
          return putBack(deps, claimed, answer.delayMs);
        await sleep(Math.max(1, answer.delayMs));
    }
  }
}

async function putBack(deps: SendDeps, claimed: Compensation, dueInMs: number): Promise<null> {
  await changeState(deps.db, { from: claimed, event: { type: 'put-back' }, dueInMs });
  return null;
}

/** A fresh look, or null when it ended this compensation's turn: healed, changed, or not readable now. */
async function lookOrDefer(deps: SendDeps, claimed: Compensation, route: RepairRoute): Promise<Seen | null> {
  let look: Awaited<ReturnType<RepairRoute['look']>>;
  try {
    look = await route.look(claimed.key);
  } catch (error) {
    if (!(error instanceof SideError)) throw error;
    deps.logger.warn(
      { event: 'look.failed', traceId: claimed.traceId, compensation: claimed.id, err: error },
      'look failed',
    );
    await changeState(deps.db, { from: claimed, event: { type: 'defer' }, dueInMs: AFTER_FAILED_LOOK_MS });
    return null;
  }
  if (look.verdict.verdict === 'match') {
    await healed(deps, claimed);
    return null;
  }
  if (look.verdict.verdict === 'undecided') {
    await changeState(deps.db, {
      from: claimed,
      event: { type: 'defer' },
      dueInMs: AFTER_FAILED_LOOK_MS,
      detail: look.verdict.reason,
    });
    return null;
  }
  const { finding } = look.verdict;
  return (await stillThePlan(deps, claimed, route, finding)) ? { finding, takenAtMs: look.takenAtMs } : null;
}

async function healed(deps: SendDeps, claimed: Compensation): Promise<void> {
  const ended = await inTransaction(deps.db, async (trx) => {
    await lockDiff(trx, claimed.diffId);
    if (!(await changeState(trx, { from: claimed, event: { type: 'look-equal' } }))) return false;
    await closeDiff(trx, claimed.diffId, {
      state: 'healed',
      by: 'trueup',
      reason: 'the sides agree; nothing was sent',
    });
    return true;
  });
  if (ended) deps.onEnded({ compensation: claimed, result: 'healed' });
  deps.logger.debug(
    { event: 'compensation.healed', traceId: claimed.traceId, compensation: claimed.id },
    'healed already',
  );
}

/** The records may have changed since the plan; then this plan is replaced by one for what they are now (rule 6.2). */
async function stillThePlan(
  deps: SendDeps,
  claimed: Compensation,
  route: RepairRoute,
  finding: Finding,
): Promise<boolean> {
  const plan = planCompensation({
    finding,
    reconciliation: { name: route.pair.name, config: route.pair.config },
    // `maxAge` was weighed when it was planned.
    now: claimed.createdAt,
    byPerson: true,
  });
  if (plan.plan === 'compensate' && plan.fingerprint === claimed.fingerprint) return true;
  await inTransaction(deps.db, async (trx) => {
    const event = { type: 'look-changed' } as const;
    await lockDiff(trx, claimed.diffId);
    if (!(await changeState(trx, { from: claimed, event, detail: 'the records changed' }))) return;
    await recordDiffEvent(trx, { diffId: claimed.diffId, compensationId: claimed.id, event: 'superseded' });
    await planDiff(
      trx,
      { id: claimed.diffId, traceId: claimed.traceId, finding },
      {
        pair: route.pair,
        now: await storeClock(trx),
        runId: claimed.runId,
        configRevision: deps.configRevision,
      },
    );
  });
  return false;
}
