/** What a look after a send leads to. The names are those of `CompensationEvent`, and `look-later` for none. */
export type Settlement =
  | { readonly event: 'seen' }
  | { readonly event: 'look-later'; readonly afterMs: number }
  | { readonly event: 'resend' }
  | { readonly event: 'replaced' }
  | { readonly event: 'escalate'; readonly reason: 'unresolved' | 'not-taken' | 'unreadable' };

export interface RepeatRules {
  /** The target answers a repeated key with the first result. */
  readonly dedupes: boolean;
  /** How long it remembers a key, in ms. */
  readonly keyRetentionMs: number;
  /** After this a send that is not visible was not applied, in ms; null when nobody promises that. */
  readonly appliesWithinMs: number | null;
}

export interface SettleInput {
  readonly state: 'applied' | 'unknown';
  /** `failed`: the sides could not be read, or the record is undecided. */
  readonly look: 'equal' | 'differs' | 'failed';
  /** Milliseconds since the first of the failed looks in a row, this one included; 0 when it is the first. */
  readonly undecidedForMs: number;
  /** For how long looks may fail before a person is told, in ms. */
  readonly giveUpAfterMs: number;
  /** Milliseconds between the send and the start of this look. */
  readonly sinceSendMs: number;
  /** Milliseconds since the oldest send that is not settled: the target's memory of the key counts from there. */
  readonly unknownForMs: number;
  readonly target: RepeatRules;
  /** How far the read side can be behind the truth, in ms. */
  readonly readLagMs: number;
  readonly verifyWithinMs: number;
  readonly verifyEveryMs: number;
  /**
   * `resend` allows one more round (rule 6.11). The caller says `escalate` when this is that round already, and when
   * the target said "accepted, not final", which is never sent again.
   */
  readonly onNotTaken: 'escalate' | 'resend';
  /** Counted attempts so far, and the most the policy allows. */
  readonly attempts: number;
  readonly maxAttempts: number;
}

/**
 * Settles an accepted or unknown send by what a look shows (rules 6.9 to 6.11). A look proves that a send took, never
 * that it will not. A look that failed proves nothing; only when all of them fail for `giveUpAfterMs` is a person told.
 */
export function settle(input: SettleInput): Settlement {
  if (input.look === 'equal') return { event: 'seen' };
  if (input.look === 'failed') {
    if (input.undecidedForMs >= input.giveUpAfterMs) return { event: 'escalate', reason: 'unreadable' };
    return { event: 'look-later', afterMs: input.verifyEveryMs };
  }
  return input.state === 'applied' ? settleApplied(input) : settleUnknown(input);
}

/**
 * Rule 6.10: whether an unknown send may be repeated `sendMs` after the latest and `unknownMs` after the oldest one, when a look taken then still differs.
 * Ask again when the repeat really starts: a hold in between can outlast the target's memory of the key.
 */
export function mayRepeat(
  since: { readonly sendMs: number; readonly unknownMs: number },
  target: RepeatRules,
  readLagMs: number,
): boolean {
  if (target.dedupes && since.unknownMs < target.keyRetentionMs) return true;
  return target.appliesWithinMs !== null && since.sendMs > target.appliesWithinMs + readLagMs;
}

function settleApplied(input: SettleInput): Settlement {
  const leftMs = input.verifyWithinMs - input.sinceSendMs;
  if (leftMs > 0) return lookLater(input, leftMs);
  return input.onNotTaken === 'resend' ? { event: 'replaced' } : { event: 'escalate', reason: 'not-taken' };
}

function settleUnknown(input: SettleInput): Settlement {
  const { sinceSendMs, target, readLagMs } = input;
  const attemptsLeft = input.attempts < input.maxAttempts;
  const repeatable = mayRepeat({ sendMs: sinceSendMs, unknownMs: input.unknownForMs }, target, readLagMs);
  const pausedMs = sinceSendMs - pauseBeforeResend(input);
  if (attemptsLeft && repeatable) {
    return pausedMs >= 0 ? { event: 'resend' } : lookLater(input, -pausedMs);
  }
  // One millisecond more, since the look must be later than the sum.
  const appliedMs = target.appliesWithinMs === null ? 0 : target.appliesWithinMs + readLagMs + 1;
  const leftMs = Math.max(input.verifyWithinMs, appliedMs) - sinceSendMs;
  return leftMs > 0 ? lookLater(input, leftMs) : { event: 'escalate', reason: 'unresolved' };
}

/**
 * A target that dedupes could be asked again at once; but what it answers while the first call still runs is a 409,
 * and attempts would be spent within a second. So the pause doubles with each attempt, up to `verifyWithin`.
 */
function pauseBeforeResend(input: SettleInput): number {
  return Math.min(input.verifyEveryMs * 2 ** Math.max(0, input.attempts - 1), input.verifyWithinMs);
}

function lookLater(input: SettleInput, leftMs: number): Settlement {
  return { event: 'look-later', afterMs: Math.max(1, Math.min(input.verifyEveryMs, Math.ceil(leftMs))) };
}
