import type { Outcome } from '../compensate/action.ts';
import { decide } from '../compensate/retry/decide.ts';
import type { CompensationEvent } from '../compensate/state.ts';
import { endAttempt, targetFailuresInARow } from '../store/attempts.ts';
import { type Compensation, changeState } from '../store/compensations.ts';
import { type Db, inTransaction } from '../store/database.ts';
import { recordDiffEvent } from '../store/diffs.ts';
import type { Granted } from '../store/grants.ts';
import { noteOutcome } from '../store/note-outcome.ts';
import { targetState } from '../store/target-state.ts';
import type { RepairRoute, SendDeps } from './run-compensation.ts';

export interface SendResult {
  readonly compensation: Compensation;
  readonly route: RepairRoute;
  readonly granted: Granted;
  readonly outcome: Outcome;
  /** Monotonic time at which the send started. */
  readonly startedMs: number;
}

/**
 * Stores what an attempt came to: the attempt with its evidence, the gate's rate state and the compensation's next
 * state, in one transaction, fenced by the attempt number. Returns what became of the compensation.
 */
export async function recordOutcome(deps: SendDeps, result: SendResult): Promise<string> {
  const { compensation, route, granted, outcome } = result;
  // Before the gate is locked, since nobody needs to wait for these counts.
  const state = hasFailed(outcome) ? await targetState(deps.db, compensation.target) : null;
  return inTransaction(deps.db, async (trx) => {
    // The gate's row first, as in every transaction that touches both, so that no two wait for each other.
    const gate = await noteOutcome(trx, { gate: route.gate, target: route.target, outcome });
    const failures =
      outcome.class === 'target-down' ? (await targetFailuresInARow(trx, compensation.id)) + 1 : 0;
    const counted = outcome.class !== 'target-down';
    const attempts = compensation.attempts + (counted ? 1 : 0);
    const decision = decide({
      outcome,
      attempts,
      quickTargetFailures: failures,
      elapsedMs: compensation.firstSentMsAgo ?? 0,
      policy: route.target.retry,
      target: {
        maxSlowMs: route.target.maxSlow,
        dedupes: route.target.idempotency.dedupes,
      },
      random: deps.random,
    });
    await deps.checkpoint('before-record');
    await endAttempt(trx, {
      compensationId: compensation.id,
      number: granted.attempt,
      outcome,
      counted,
      system: { ...gate, ...state, decision: decision.event, worker: deps.workerId, version: deps.version },
      startedMsAgo: performance.now() - result.startedMs,
    });
    const event: CompensationEvent =
      decision.event === 'escalate'
        ? { type: 'escalate', reason: decision.reason }
        : { type: decision.event };
    const changed = await changeState(trx, {
      from: { id: compensation.id, state: 'sending', attemptNumber: granted.attempt },
      event,
      dueInMs: dueIn(decision, route),
      ...(decision.event === 'escalate' ? { detail: decision.detail } : {}),
      values: {
        attempts,
        ...unknownAfter(decision.event, outcome, compensation, trx),
        target_down_since:
          outcome.class === 'target-down' ? trx.raw('coalesce(target_down_since, clock_timestamp())') : null,
      },
    });
    // The lease had run out meanwhile: the row is unknown and the looks decide; the evidence is kept all the same.
    if (!changed) return 'late';
    await recordDiffEvent(trx, {
      diffId: compensation.diffId,
      compensationId: compensation.id,
      event: decision.event === 'escalate' ? 'escalated' : decision.event,
      detail: {
        attempt: granted.attempt,
        class: outcome.class,
        code: outcome.code,
        ...(decision.event === 'escalate' ? { reason: decision.reason } : {}),
      },
    });
    return decision.event;
  });
}

/** The breaker is open: back into the backlog, not counted (rule 6.12). */
export async function recordOpen(deps: SendDeps, claimed: Compensation, dueInMs: number): Promise<void> {
  await changeState(deps.db, {
    from: claimed,
    event: { type: 'defer' },
    dueInMs,
    values: {
      target_down_since: deps.db.raw('coalesce(target_down_since, clock_timestamp())'),
      undecided_since: null,
    },
  });
}

function hasFailed(outcome: Outcome): boolean {
  return outcome.class !== 'accepted' && outcome.class !== 'pending';
}

/**
 * What is unknown stays unknown until a look settles it: a later attempt that surely did nothing says nothing about an
 * earlier one. An accepted one does, since the target has now applied this key.
 */
function unknownAfter(event: string, outcome: Outcome, compensation: Compensation, trx: Db) {
  if (event === 'ambiguous') {
    return { last_unknown: true, unknown_since: trx.raw('coalesce(unknown_since, last_sent_at)') };
  }
  if (outcome.class === 'accepted' || outcome.class === 'pending')
    return { last_unknown: false, unknown_since: null };
  return { last_unknown: compensation.lastUnknown };
}

function dueIn(decision: ReturnType<typeof decide>, route: RepairRoute): number {
  switch (decision.event) {
    case 'retry':
    case 'defer':
      return decision.waitMs;
    case 'accepted':
    case 'ambiguous':
      return Math.min(route.repair.verify.every, 1000);
    case 'escalate':
      return 0;
  }
}
