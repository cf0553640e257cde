import { DateTime } from 'luxon';

const SECONDS = /^\d+$/;

/**
 * Milliseconds to wait according to a `Retry-After` header: whole seconds, or an HTTP date (RFC 9110) counted from
 * `nowMs`, epoch milliseconds. Clamped to [0, maxMs], because a target that says "in 31 years" must not park its
 * compensations for ever. Null when there is no header or it is not exactly one of the two forms; never NaN, which
 * timers take for "at once".
 */
export function parseRetryAfter(
  header: string | readonly string[] | null | undefined,
  nowMs: number,
  maxMs: number,
): number | null {
  const text = (typeof header === 'string' ? header : header?.[0])?.trim();
  if (text === undefined) return null;
  const ms = SECONDS.test(text) ? Number(text) * 1000 : untilDate(text, nowMs);
  return ms === null ? null : Math.min(Math.max(ms, 0), maxMs);
}

function untilDate(text: string, nowMs: number): number | null {
  const date = DateTime.fromHTTP(text, { zone: 'utc' });
  return date.isValid ? date.toMillis() - nowMs : null;
}
