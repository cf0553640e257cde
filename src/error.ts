/** What the process says to a shell when it ends. Documented in `docs/reference/cli.md`. */
export const EXIT = {
  clean: 0,
  unexpected: 1,
  usage: 2,
  diffs: 3,
  needsPerson: 4,
  schema: 5,
  incomplete: 6,
  temporary: 75,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/**
 * An error that trueup itself raises and explains. `code` is stable and documented, `message` says what is wrong,
 * `hint` what to do about it, `exit` how a command ends because of it.
 */
export class TrueupError extends Error {
  override readonly name: string = 'TrueupError';
  readonly code: string;
  readonly exit: ExitCode;
  readonly hint: string | undefined;

  constructor(
    code: string,
    message: string,
    options: { exit?: ExitCode; hint?: string; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.exit = options.exit ?? EXIT.unexpected;
    this.hint = options.hint;
  }
}
