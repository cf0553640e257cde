/**
 * What an action says about a failure. The disposition is a property of the error, not of its class, so that it
 * survives wrapping and two copies of this package (`retryable` is read anywhere in the cause chain).
 */
abstract class OutcomeError extends Error {
  readonly detail: unknown;

  constructor(message: string, options: { cause?: unknown; detail?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.detail = options.detail;
  }
}

/** Surely not applied; trying again may help. */
export class RetryableError extends OutcomeError {
  override readonly name = 'RetryableError';
  readonly retryable = true;
}

/** Refused for good; trying again cannot help. */
export class FatalError extends OutcomeError {
  override readonly name = 'FatalError';
  readonly retryable = false;
}

/** May have been applied; only a look can tell (rule 6.10). */
export class UnknownOutcomeError extends OutcomeError {
  override readonly name = 'UnknownOutcomeError';
  readonly outcome = 'unknown';
}
