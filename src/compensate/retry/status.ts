import type { OutcomeClass } from './error-codes.ts';

/**
 * The class of an HTTP status when no matcher of the config spoke. Not listed: 3xx are fatal because redirects are
 * not followed (each hop would be an uncounted call, rule 6.16), other 4xx are fatal, other 5xx unknown.
 */
const STATUS: Readonly<Record<number, OutcomeClass>> = {
  408: 'unknown', // the server gave up reading; what it did with the part it had is its secret
  409: 'conflict',
  425: 'retryable', // too early: refused before processing
  429: 'target-down',
  503: 'target-down',
  501: 'fatal', // the target does not know this method at all
  502: 'unknown',
  504: 'unknown',
};

/** `dedupes`: the target recognises a repeated idempotency key, so a 500 may be repeated (rule 6.10). */
export function classOfStatus(status: number, dedupes: boolean): OutcomeClass {
  const listed = STATUS[status];
  if (listed !== undefined) return listed;
  if (status === 500) return dedupes ? 'retryable' : 'unknown';
  if (status >= 200 && status < 300) return 'accepted';
  return status >= 300 && status < 500 ? 'fatal' : 'unknown';
}
