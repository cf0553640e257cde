import { inspect } from 'node:util';
import type { ErrorRecord, Outcome } from '../action.ts';
import type { Classified } from '../retry/classify.ts';

export interface Evidence {
  readonly request: unknown;
  readonly answer?: unknown;
  readonly error?: ErrorRecord | null;
  readonly retryAfterMs?: number | null;
  /** `performance.now()` when the send began: the monotonic clock. */
  readonly startedAt: number;
}

export function outcome(classified: Classified, evidence: Evidence): Outcome {
  return {
    class: classified.class,
    code: classified.code,
    unclassified: classified.unclassified,
    retryAfterMs: evidence.retryAfterMs ?? null,
    request: evidence.request,
    answer: evidence.answer ?? null,
    error: evidence.error ?? null,
    durationMs: performance.now() - evidence.startedAt,
  };
}

/** The class and code of a failure that needs no guess. */
export function known(failure: Outcome['class'], code: string): Classified {
  return { class: failure, code, unclassified: false };
}

/** The stable code of an error, such as `ECONNREFUSED` or an SQLSTATE. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** What an attempt keeps of an answer, in bytes: enough to explain it, too little to fill the store. */
export const KEPT_BYTES = 64 * 1024;

/** A value as it can be stored: plain JSON where it is that and small, else its printed form, cut. */
export function storable(value: unknown): unknown {
  const json = asJson(value);
  if (json !== undefined && Buffer.byteLength(json) <= KEPT_BYTES) return JSON.parse(json);
  return (json ?? inspect(value, { depth: 4, breakLength: Number.POSITIVE_INFINITY })).slice(0, KEPT_BYTES);
}

function asJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value ?? null);
  } catch {
    // A bigint or a cycle: `storable` prints it instead.
    return undefined;
  }
}
