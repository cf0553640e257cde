import type { RetryPolicy } from '../../config/schema.ts';

/** How far the attempts have come. */
export interface Progress {
  /** Counted attempts, the one that just ended included. */
  readonly attempts: number;
  /** Milliseconds since the first attempt started. */
  readonly elapsedMs: number;
}

/**
 * Why no attempt may follow, or null when one may. The conditions are any-of. `attempts` counts the first try;
 * `elapsed` is judged at the moment the next attempt would start, which is `waitMs` from now.
 */
export function stopReason(
  progress: Progress,
  waitMs: number,
  policy: Pick<RetryPolicy, 'attempts' | 'elapsed'>,
): 'attempts' | 'elapsed' | null {
  if (progress.attempts >= policy.attempts) return 'attempts';
  if (policy.elapsed !== undefined && progress.elapsedMs + waitMs > policy.elapsed) return 'elapsed';
  return null;
}
