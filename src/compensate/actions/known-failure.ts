import type { Outcome } from '../action.ts';

/** A failure whose class the action knows for sure, so that nothing has to be guessed from its text. */
export class KnownFailure extends Error {
  override readonly name = 'KnownFailure';
  readonly class: Outcome['class'];
  readonly code: string;

  constructor(failure: Outcome['class'], code: string, message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.class = failure;
    this.code = code;
  }
}
