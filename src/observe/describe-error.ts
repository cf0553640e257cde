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

/** What is read of an error; a stored error record has the same properties. */
interface ErrorLike {
  readonly name?: unknown;
  readonly message: string;
  readonly code?: unknown;
  readonly hint?: unknown;
  readonly stack?: unknown;
  readonly cause?: unknown;
  readonly errors?: unknown;
}

/**
 * An error, or the record of one, with its whole cause chain. Only known properties are taken: libraries hang
 * requests, addresses and records on their errors. Anything else that was thrown is described by its text.
 */
export function describeError(error: unknown, depth = DEPTH): DescribedError {
  if (!isErrorLike(error)) return { type: typeof error, message: textOf(error) };
  const { name, message, code, hint, stack, cause, errors } = error;
  const deeper = depth > 1;
  return {
    type: typeof name === 'string' ? name : 'Error',
    message,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(typeof hint === 'string' ? { hint } : {}),
    ...(typeof stack === 'string' ? { stack } : {}),
    ...(cause === undefined || cause === null || !deeper ? {} : { cause: describeError(cause, depth - 1) }),
    ...(Array.isArray(errors) && deeper
      ? { errors: errors.slice(0, ERRORS).map((each: unknown) => describeError(each, depth - 1)) }
      : {}),
  };
}

function isErrorLike(value: unknown): value is ErrorLike {
  return (
    typeof value === 'object' && value !== null && 'message' in value && typeof value.message === 'string'
  );
}

/** `String()` throws for an object without a prototype. */
function textOf(value: unknown): string {
  if (typeof value === 'object' && value !== null) return Object.prototype.toString.call(value);
  return String(value);
}
