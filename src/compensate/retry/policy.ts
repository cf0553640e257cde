import { formatDuration } from '../../config/duration.ts';
import type { RetryPolicy } from '../../config/schema.ts';
import { type Progress, stopReason } from './stop.ts';
import { waitBefore } from './wait.ts';

export type NextTry =
  | { readonly next: 'retry'; readonly waitMs: number }
  | { readonly next: 'stop'; readonly why: 'attempts' | 'elapsed' };

/**
 * Stop and wait put together: whether another attempt follows, and after how long. `atLeastMs` is a wait somebody
 * else asked for (`Retry-After`, the 5 s after a 429); the longer one counts, also against `elapsed`.
 */
export function nextTry(
  progress: Progress,
  policy: RetryPolicy,
  random: () => number,
  atLeastMs = 0,
): NextTry {
  const waitMs = Math.max(waitBefore(Math.max(1, progress.attempts), policy.wait, random), atLeastMs);
  const why = stopReason(progress, waitMs, policy);
  return why === null ? { next: 'retry', waitMs } : { next: 'stop', why };
}

/** The policy in words, for `trueup policy show`: attempts, and the waits between them before jitter. */
export function describePolicy(policy: RetryPolicy): string {
  const plain = { ...policy.wait, jitter: 0 };
  const shown = Math.min(policy.attempts - 1, 8);
  const waits = Array.from({ length: shown }, (_, index) =>
    formatDuration(waitBefore(index + 1, plain, () => 0.5)),
  );
  const more = policy.attempts - 1 > shown ? ', …' : '';
  const parts = [`${policy.attempts} ${policy.attempts === 1 ? 'attempt' : 'attempts'}`];
  if (policy.wait.kind === 'random') {
    parts.push(`random waits of ${formatDuration(policy.wait.base)} to ${formatDuration(policy.wait.cap)}`);
  } else if (waits.length > 0) {
    const jitter = policy.wait.jitter > 0 ? ` ±${Math.round(policy.wait.jitter * 100)} %` : '';
    parts.push(`waits ${waits.join(', ')}${more}${jitter}, at most ${formatDuration(policy.wait.cap)}`);
  }
  if (policy.elapsed !== undefined)
    parts.push(`none later than ${formatDuration(policy.elapsed)} after the first`);
  return parts.join('; ');
}
