import type { RetryPolicy } from '../../config/schema.ts';
import type { Outcome } from '../action.ts';
import type { EscalationReason } from '../state.ts';
import { nextTry } from './policy.ts';

/** What becomes of a compensation after an attempt. The names are those of `CompensationEvent`. */
export type Decision =
  /** Looks settle it. */
  | { readonly event: 'accepted' }
  | { readonly event: 'retry'; readonly waitMs: number }
  /** Back into the backlog; not before `waitMs` from now. */
  | { readonly event: 'defer'; readonly waitMs: number }
  /** Only a look can tell (rule 6.10). */
  | { readonly event: 'ambiguous' }
  | {
      readonly event: 'escalate';
      readonly reason: Extract<EscalationReason, 'refused' | 'exhausted'>;
      readonly detail: string;
    };

export interface DecisionInput {
  readonly outcome: Pick<Outcome, 'class' | 'code' | 'retryAfterMs' | 'durationMs'>;
  /** Attempts that count, this one included where it does. Failures of the target do not count (rule 6.12). */
  readonly attempts: number;
  /**
   * Failures of the target in a row, this one included. A deferral does not reset it, so that a failed probe is not
   * followed by another round of quick retries.
   */
  readonly quickTargetFailures: number;
  /** Milliseconds since the first attempt started. */
  readonly elapsedMs: number;
  readonly policy: RetryPolicy;
  readonly target: { readonly maxSlowMs: number; readonly dedupes: boolean };
  readonly random: () => number;
}

/** After a 429 there is one quick retry, and not before this. */
const THROTTLED_WAIT_MS = 5_000;
const THROTTLED_TRIES = 2;

/**
 * The next step after an attempt (rules 6.7, 6.12). A person is reached in two ways only: the record was refused, or
 * every counted attempt is spent. A target that is down leads to none of them, however long it is; when it is given up
 * is the gate's matter (`gate/outage.ts`).
 *
 * A send slower than `maxSlow` is not retried quickly; with attempts left it is deferred by the longest wait of the
 * policy, because a person must not be called while attempts are left.
 */
export function decide(input: DecisionInput): Decision {
  switch (input.outcome.class) {
    case 'accepted':
    case 'pending':
      return { event: 'accepted' };
    case 'unknown':
    case 'conflict':
      return { event: 'ambiguous' };
    case 'fatal':
      return { event: 'escalate', reason: 'refused', detail: `the target refused it: ${input.outcome.code}` };
    case 'retryable':
      return afterFailure(input);
    case 'target-down':
      return afterTargetFailure(input);
  }
}

function afterFailure(input: DecisionInput): Decision {
  const { outcome, attempts, policy } = input;
  const next = nextTry(input, policy, input.random, outcome.retryAfterMs ?? 0);
  if (next.next === 'stop') {
    const spent =
      next.why === 'attempts' ? `all ${attempts} attempts failed` : 'no time is left for an attempt';
    return { event: 'escalate', reason: 'exhausted', detail: `${spent}, the last with ${outcome.code}` };
  }
  return tooSlow(input) ? deferred(input) : { event: 'retry', waitMs: next.waitMs };
}

function afterTargetFailure(input: DecisionInput): Decision {
  const { outcome, policy } = input;
  const throttled = outcome.code === 'http-429';
  const tries = throttled ? Math.min(THROTTLED_TRIES, policy.attempts) : policy.attempts;
  const atLeastMs = Math.max(outcome.retryAfterMs ?? 0, throttled ? THROTTLED_WAIT_MS : 0);
  const progress = { attempts: input.quickTargetFailures, elapsedMs: input.elapsedMs };
  const next = nextTry(progress, { ...policy, attempts: tries }, input.random, atLeastMs);
  const asksForLong = (outcome.retryAfterMs ?? 0) > Math.max(policy.wait.cap, THROTTLED_WAIT_MS);
  if (next.next === 'stop' || asksForLong || tooSlow(input)) return deferred(input);
  return { event: 'retry', waitMs: next.waitMs };
}

function tooSlow(input: DecisionInput): boolean {
  return input.outcome.durationMs > input.target.maxSlowMs;
}

/** The backlog's pace is set by the gate; the wait only keeps one record from coming round at once. */
function deferred(input: DecisionInput): Decision {
  return { event: 'defer', waitMs: Math.max(input.policy.wait.cap, input.outcome.retryAfterMs ?? 0) };
}
