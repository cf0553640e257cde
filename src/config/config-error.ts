import { EXIT, TrueupError } from '../error.ts';

/** One thing that is wrong in a config file, and what to write instead. Holds no secret. */
export interface Problem {
  /** `reconciliations.payments.window.settle`; empty for the file as a whole. */
  readonly path: string;
  readonly message: string;
  readonly hint: string;
  /** Where it stands in the file, counted from 1; null when it cannot be said. */
  readonly line: number | null;
  readonly column: number | null;
}

/** Everything that is wrong with a config file, at once (`TRU_CONFIG_INVALID`, exit 2). */
export class ConfigError extends TrueupError {
  override readonly name = 'ConfigError';
  readonly file: string;
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`;
    super('TRU_CONFIG_INVALID', `${file} has ${count}\n${problems.map(formatProblem).join('\n')}`, {
      exit: EXIT.usage,
      hint: 'correct the file and try again',
    });
    this.file = file;
    this.problems = problems;
  }
}

function formatProblem(problem: Problem): string {
  const line = problem.line === null ? '' : ` (line ${problem.line}, column ${problem.column ?? 1})`;
  const where = problem.path === '' ? '' : `${problem.path}: `;
  return `  ${where}${problem.message}${line}\n      ${problem.hint}`;
}
