import type { WaitPolicy } from '../../config/schema.ts';

/**
 * Milliseconds to wait before the next attempt. `attemptJustFailed` counts from 1; `random` gives [0, 1).
 *
 * Jitter is drawn between `wait * (1 - jitter)` and `wait * (1 + jitter)`, and the upper end is moved down to the cap
 * before drawing: the result never exceeds the cap, and waits at the cap do not all become equal to it, which would
 * put every retry into the same instant. `random` is a wait drawn between base and cap; it needs no jitter.
 */
export function waitBefore(attemptJustFailed: number, policy: WaitPolicy, random: () => number): number {
  if (policy.kind === 'random') return between(Math.min(policy.base, policy.cap), policy.cap, random);
  const wait = Math.min(plainWait(attemptJustFailed, policy), policy.cap);
  return between(wait * (1 - policy.jitter), Math.min(wait * (1 + policy.jitter), policy.cap), random);
}

/** The wait before jitter and cap. Late exponential waits become Infinity, which the cap then ends; never NaN. */
function plainWait(attemptJustFailed: number, policy: WaitPolicy): number {
  const earlier = attemptJustFailed - 1;
  switch (policy.kind) {
    case 'incremental':
      return policy.base + policy.step * earlier;
    case 'exponential':
      return policy.base === 0 ? 0 : policy.base * policy.factor ** earlier;
    default:
      return policy.base;
  }
}

function between(low: number, high: number, random: () => number): number {
  return low + (high - low) * random();
}
