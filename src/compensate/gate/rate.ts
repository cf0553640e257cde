import type { Target } from '../../config/schema.ts';
import { type Bucket, countIn, remember } from './outcome-counts.ts';

/**
 * How fast a target may be called below its watermark (rules 6.17, 6.18): adaptation, breaker, ramp and `Retry-After`
 * as one state and one pure function. Times are epoch milliseconds of the store's clock. The state is plain JSON.
 *
 * - **Factor.** The rate is a share of the watermark. It is halved at most once per 10 s: at once on a 429, and when
 *   20 % of the recent outcomes were failures of the target or slow answers. Each second with a good answer gives back
 *   2 % of the watermark, so a halving is made good in 25 s.
 * - **Breaker.** Opens at `consecutive` target failures in a row, or at `ratio` of at least `minimum` outcomes in 60 s.
 *   After `open` it lets six probes a window through, far apart; three good ones in a row close it, one bad one opens it
 *   again.
 *   After closing the factor starts at 5 % and grows as above: a ramp, never full speed at once.
 * - Slow answers lower the rate and do not open the breaker: the first remedy is to ask less often, and a target that
 *   answers nothing in time fails with timeouts, which do open it. Answers about a record (400, 404) are good answers.
 */
export interface RateState {
  /** Share of the watermark that may be used: above 0, at most 1. */
  readonly factor: number;
  /** Without a watermark: what was called per window when the factor first left 1, so that halving means something. */
  readonly measured: number | null;
  readonly halvedAtMs: number | null;
  readonly grownAtMs: number | null;
  /** Target failures in a row. */
  readonly inARow: number;
  readonly breaker: Breaker;
  /** `Retry-After` holds the whole target until then. */
  readonly heldUntilMs: number | null;
  /** Outcomes per second of the last 60 s, oldest first. */
  readonly buckets: readonly Bucket[];
}

export type Breaker =
  | { readonly kind: 'closed' }
  | { readonly kind: 'open'; readonly untilMs: number }
  /** Probes go through; `good` of them in a row were answered well. */
  | { readonly kind: 'half-open'; readonly good: number };

export type BreakerPolicy = Target['breaker'];

export type RateEvent =
  /** A good answer in good time. */
  | { readonly type: 'ok' }
  /** A good answer that took longer than the policy's `slow`. */
  | { readonly type: 'slow' }
  /** An answer about the record, not the target (400, 404): the target is well. */
  | { readonly type: 'record-failure' }
  | { readonly type: 'target-failure'; readonly retryAfterMs: number | null }
  /** A 429. */
  | { readonly type: 'throttled'; readonly retryAfterMs: number | null }
  /** Nothing happened; only time has passed. */
  | { readonly type: 'tick' };

/** Nothing is known against the target. */
export const START_RATE: RateState = {
  factor: 1,
  measured: null,
  halvedAtMs: null,
  grownAtMs: null,
  inARow: 0,
  breaker: { kind: 'closed' },
  heldUntilMs: null,
  buckets: [],
};

const HALVE_EVERY_MS = 10_000;
const HALVE_AT_SHARE = 0.2;
/** Fewer outcomes than this prove nothing about a share of 20 %: see docs/decisions/0003-adaptive-window.md. */
const SHARE_MINIMUM = 80;
const GROW_EVERY_MS = 1_000;
const GROW_BY = 0.02;
const RAMP_START = 0.05;
/** However often it is halved, the factor stays above this, so that growth can be noticed again. */
const FACTOR_FLOOR = 0.01;
const WINDOW_S = 60;
const RECENT_S = 10;
const PROBES_PER_WINDOW = 6;
const PROBES_TO_CLOSE = 3;

/**
 * The state after an event. `ceiling` is the configured watermark: without one (null) the rate of calls is measured
 * when the breaker or the adaptation first needs a number to lower.
 */
export function rateStep(
  state: RateState,
  event: RateEvent,
  policy: BreakerPolicy,
  nowMs: number,
  limits: { readonly ceiling: number | null },
): RateState {
  const now = afterTime(state, nowMs);
  if (event.type === 'tick') return now;
  const failed = event.type === 'target-failure' || event.type === 'throttled';
  const noted: RateState = {
    ...now,
    buckets: remember(now.buckets, nowMs, { failed, slow: event.type === 'slow' }),
    inARow: failed ? now.inARow + 1 : 0,
    heldUntilMs: failed ? holdUntil(now.heldUntilMs, event.retryAfterMs, nowMs) : now.heldUntilMs,
  };
  switch (noted.breaker.kind) {
    // An answer to a call from before the breaker opened: noted, and nothing more.
    case 'open':
      return noted;
    case 'half-open':
      return afterProbe(noted, noted.breaker.good, failed || event.type === 'slow', policy, nowMs);
    case 'closed':
      if (failed && mustOpen(noted, policy, nowMs))
        return open(measure(noted, limits.ceiling, nowMs), policy, nowMs);
      return adapt(noted, event, nowMs, limits.ceiling);
  }
}

export type RateReason = 'ceiling' | 'override' | 'adaptive' | 'probing' | 'breaker-open' | 'retry-after';

/**
 * How many calls may start per window now, and which of the three limits says so: the configured `ceiling`, a
 * person's `override`, or the target's state, whose share is taken of the lower of the two. Null is unlimited, 0 lets
 * nothing through.
 */
export function effectiveRate(
  state: RateState,
  ceiling: number | null,
  override: number | null,
  nowMs: number,
): { readonly limit: number | null; readonly reason: RateReason } {
  const now = afterTime(state, nowMs);
  const allowed = least(ceiling, override);
  const person: RateReason = override !== null && allowed === override ? 'override' : 'ceiling';
  if (allowed === 0) return { limit: 0, reason: person };
  if (now.breaker.kind === 'open') return { limit: 0, reason: 'breaker-open' };
  if (now.heldUntilMs !== null) return { limit: 0, reason: 'retry-after' };
  if (now.breaker.kind === 'half-open')
    return { limit: least(allowed, PROBES_PER_WINDOW), reason: 'probing' };
  const whole = allowed ?? now.measured;
  if (now.factor >= 1 || whole === null) return { limit: allowed, reason: person };
  return { limit: Math.max(1, Math.floor(whole * now.factor)), reason: 'adaptive' };
}

/** What time alone changes: an open breaker becomes half-open, a hold ends. */
function afterTime(state: RateState, nowMs: number): RateState {
  const { breaker, heldUntilMs } = state;
  return {
    ...state,
    breaker: breaker.kind === 'open' && nowMs >= breaker.untilMs ? { kind: 'half-open', good: 0 } : breaker,
    heldUntilMs: heldUntilMs !== null && nowMs >= heldUntilMs ? null : heldUntilMs,
  };
}

function holdUntil(heldUntilMs: number | null, retryAfterMs: number | null, nowMs: number): number | null {
  if (retryAfterMs === null) return heldUntilMs;
  return Math.max(heldUntilMs ?? 0, nowMs + retryAfterMs);
}

function mustOpen(state: RateState, policy: BreakerPolicy, nowMs: number): boolean {
  if (state.inARow >= policy.consecutive) return true;
  const { total, failed } = countIn(state.buckets, nowMs, WINDOW_S);
  return total >= policy.minimum && failed >= policy.ratio * total;
}

function open(state: RateState, policy: BreakerPolicy, nowMs: number): RateState {
  return { ...state, breaker: { kind: 'open', untilMs: nowMs + policy.open } };
}

function afterProbe(
  state: RateState,
  goodBefore: number,
  bad: boolean,
  policy: BreakerPolicy,
  nowMs: number,
): RateState {
  if (bad) return open(state, policy, nowMs);
  const good = goodBefore + 1;
  if (good < PROBES_TO_CLOSE) return { ...state, breaker: { kind: 'half-open', good } };
  // What was counted before the outage ended says nothing about the target now.
  return {
    ...state,
    breaker: { kind: 'closed' },
    buckets: [],
    inARow: 0,
    factor: RAMP_START,
    halvedAtMs: null,
    grownAtMs: nowMs,
  };
}

function adapt(state: RateState, event: RateEvent, nowMs: number, ceiling: number | null): RateState {
  const mayHalve = state.halvedAtMs === null || nowMs - state.halvedAtMs >= HALVE_EVERY_MS;
  if (event.type === 'throttled' || tooManyBad(state, nowMs)) {
    if (!mayHalve) return state;
    const measured = measure(state, ceiling, nowMs);
    return {
      ...measured,
      factor: Math.max(FACTOR_FLOOR, measured.factor / 2),
      halvedAtMs: nowMs,
      grownAtMs: nowMs,
    };
  }
  const good = event.type === 'ok' || event.type === 'record-failure';
  if (!good || state.factor >= 1 || nowMs - (state.grownAtMs ?? 0) < GROW_EVERY_MS) return state;
  const factor = Math.min(1, state.factor + GROW_BY);
  return { ...state, factor, grownAtMs: nowMs, measured: factor >= 1 ? null : state.measured };
}

/**
 * Whether 20 % of the recent outcomes were bad. Recent is the last 10 s; when these hold fewer than 80 outcomes it
 * reaches further back, at most 60 s and never past the last halving, since older outcomes belong to the old rate.
 */
function tooManyBad(state: RateState, nowMs: number): boolean {
  const sinceHalving = state.halvedAtMs === null ? WINDOW_S : Math.floor((nowMs - state.halvedAtMs) / 1000);
  for (let seconds = RECENT_S; seconds <= Math.min(WINDOW_S, sinceHalving); seconds++) {
    const { total, failed, slow } = countIn(state.buckets, nowMs, seconds);
    if (total >= SHARE_MINIMUM) return failed + slow >= HALVE_AT_SHARE * total;
  }
  return false;
}

/** Without a ceiling, the calls of the last 60 s or six times those of the last 10 s, whichever is more. */
function measure(state: RateState, ceiling: number | null, nowMs: number): RateState {
  if (ceiling !== null || state.measured !== null) return state;
  const minute = countIn(state.buckets, nowMs, WINDOW_S).total;
  const recent = countIn(state.buckets, nowMs, RECENT_S).total;
  return { ...state, measured: Math.max(minute, recent * (WINDOW_S / RECENT_S)) };
}

function least(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
