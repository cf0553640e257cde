import type { Finding } from '../reconcile/record.ts';

/**
 * What is sent. A payload is plain JSON, planned once and stored: what a retry sends is what was planned
 * (rule 6.3 compares its fingerprint).
 */
export type Payload =
  | {
      readonly type: 'http';
      readonly method: string;
      /** Path and query, without the target's base address. */
      readonly path: string;
      readonly headers: Readonly<Record<string, string>>;
      /** The body as it goes over the wire, or null for none. */
      readonly body: string | null;
    }
  | {
      readonly type: 'sql';
      readonly statement: string;
      readonly values: readonly (string | null)[];
      readonly expectRows: number;
    }
  | { readonly type: 'module'; readonly module: string; readonly input: unknown };

export interface SendContext {
  readonly idempotencyKey: string;
  readonly attempt: number;
  readonly traceId: string;
  readonly traceparent: string;
  /** Aborts at the attempt's deadline, on the monotonic clock. */
  readonly signal: AbortSignal;
  readonly diff: Finding;
  /** A `module` action takes one slot per call it makes beyond the first, which is already granted (rule 6.16). */
  readonly slot: () => Promise<void>;
}

/**
 * One attempt, as it ended. The classes of the design: `accepted` and `pending` lead to looks, `retryable` and
 * `target-down` surely did nothing, `fatal` was refused for good, `unknown` may have happened.
 */
export interface Outcome {
  readonly class: 'accepted' | 'pending' | 'retryable' | 'target-down' | 'fatal' | 'unknown' | 'conflict';
  /** A stable word for counting and grouping: `http-503`, `timeout-after-send`, `ECONNREFUSED`, `business-SIGN_ERROR`. */
  readonly code: string;
  /** True when the class was guessed because nothing matched; said aloud, and bounded. */
  readonly unclassified: boolean;
  /** From `Retry-After`, already clamped; null where there was none. */
  readonly retryAfterMs: number | null;
  readonly request: unknown;
  readonly answer: unknown;
  /** Message, stack and cause chain; null when there was an answer without an error. */
  readonly error: ErrorRecord | null;
  readonly durationMs: number;
}

export interface ErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly code: string | null;
  readonly stack: string | null;
  readonly cause: ErrorRecord | null;
}

/** Performs sends to one target. Implementations in `actions/`. `send` never throws: a failure is an `Outcome`. */
export interface Sender {
  /** Opens connections ahead of the slot, so that the call starts when the slot does. Never throws. */
  warm(): Promise<void>;
  /**
   * True when a send of this moment starts at once, or fails without a call. False when what `warm` opened is gone:
   * connecting anew would make the call start after its slot, so the slot is dropped (rule 6.14).
   */
  ready(): boolean;
  send(payload: Payload, context: SendContext): Promise<Outcome>;
  close(): Promise<void>;
}
