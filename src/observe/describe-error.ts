/** An error as data for a log line. */
export interface DescribedError {
  readonly type: string;
  readonly message: string;
  readonly code?: string | number;
  readonly hint?: string;
  readonly stack?: string;
  readonly cause?: DescribedError;
  /** Of an `AggregateError`. */
  readonly errors?: readonly DescribedError[];
}

/** A longer chain is a cycle, or tells nothing more. */
const DEPTH = 8;
const ERRORS = 10;

/**
 * An error with its whole cause chain. Only known properties are taken: libraries hang requests, addresses and
 * records on their errors. Anything thrown that is no error is described by its text.
 */
export function describeError(error: unknown, depth = DEPTH): DescribedError {
  if (!(error instanceof Error)) return { type: typeof error, message: textOf(error) };
  const { code, hint } = error as { code?: unknown; hint?: unknown };
  return {
    type: error.name,
    message: error.message,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(typeof hint === 'string' ? { hint } : {}),
    ...(error.stack === undefined ? {} : { stack: error.stack }),
    ...(error.cause === undefined || depth <= 1 ? {} : { cause: describeError(error.cause, depth - 1) }),
    ...(error instanceof AggregateError && depth > 1
      ? { errors: error.errors.slice(0, ERRORS).map((each: unknown) => describeError(each, depth - 1)) }
      : {}),
  };
}

/** `String()` throws for an object without a prototype. */
function textOf(value: unknown): string {
  if (typeof value === 'object' && value !== null) return Object.prototype.toString.call(value);
  return String(value);
}
