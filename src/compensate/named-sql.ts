import { EXIT, TrueupError } from '../error.ts';

/** A statement with `$1`, `$2`, ... and the name whose value stands in each place. */
export interface NamedSql {
  readonly text: string;
  /** `names[0]` belongs to `$1`. A name that is used twice is listed twice. */
  readonly names: readonly string[];
}

const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const WORD = /[\p{L}\p{N}_$]/u;
const DOLLAR_TAG = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy;
const CONTROL = /^(begin|start|commit|end|rollback|abort|savepoint|release|prepare|set|reset|copy)\b/i;

/**
 * Turns `:name` into `$n`. Text in quotes, quoted identifiers, comments, dollar quotes, `::casts` and `:=` are left
 * alone. Each use gets a place of its own, because PostgreSQL deduces one type per place and `a = :x, b = :x` may need
 * two. Throws `TrueupError` (`TRU_SQL_STATEMENT`) for more than one statement, transaction control (effect and
 * dedupe row share one transaction), `$1` written by hand, and quotes or comments that do not end.
 */
export function compileNamedSql(statement: string): NamedSql {
  const names: string[] = [];
  let text = '';
  // The statement as the checks below see it: without comments and without what is quoted.
  let bare = '';
  let at = 0;
  while (at < statement.length) {
    const end = endOfOpaque(statement, at);
    const name = nameAt(statement, at);
    if (end > at) {
      const part = statement.slice(at, end);
      text += part;
      bare += part.startsWith('--') || part.startsWith('/*') ? ' ' : '"';
      at = end;
    } else if (name !== undefined) {
      names.push(name);
      text += `$${names.length}`;
      bare += ':';
      at += 1 + name.length;
    } else {
      text += statement.charAt(at);
      bare += statement.charAt(at);
      at += 1;
    }
  }
  checkBare(bare);
  return { text, names };
}

function checkBare(bare: string): void {
  if (!/[^\s;]/.test(bare)) throw refused('is empty');
  if (/;[\s;]*[^\s;]/.test(bare)) throw refused('holds more than one statement');
  if (/(?<![\p{L}\p{N}_$])\$\d/u.test(bare))
    throw refused('uses a numbered place such as $1; write :name and say under bind what it is');
  const control = CONTROL.exec(bare.trim());
  if (control !== null)
    throw refused(`starts with ${control[0].toUpperCase()}; give the one statement that does the repair`);
}

/** Where a quoted, commented or dollar-quoted part that begins here ends; `at` itself when none begins here. */
function endOfOpaque(statement: string, at: number): number {
  const two = statement.slice(at, at + 2);
  const character = two.charAt(0);
  if (two === '--') {
    const newline = statement.indexOf('\n', at);
    return newline < 0 ? statement.length : newline;
  }
  if (two === '/*') return endOfComment(statement, at);
  if (character === '"') return endOfQuote(statement, at, '"', false);
  if (character === "'") return endOfQuote(statement, at, "'", isEscapeString(statement, at));
  if (two === '::') return at + 2;
  if (character === '$' && !WORD.test(before(statement, at))) {
    DOLLAR_TAG.lastIndex = at;
    const tag = DOLLAR_TAG.exec(statement)?.[0];
    if (tag !== undefined) {
      const close = statement.indexOf(tag, at + tag.length);
      if (close < 0) throw refused(`has a ${tag} that is never closed`);
      return close + tag.length;
    }
  }
  return at;
}

/** Comments nest in PostgreSQL. */
function endOfComment(statement: string, start: number): number {
  let depth = 0;
  for (let at = start; at < statement.length; at += 1) {
    const two = statement.slice(at, at + 2);
    if (two !== '/*' && two !== '*/') continue;
    depth += two === '/*' ? 1 : -1;
    at += 1;
    if (depth === 0) return at + 1;
  }
  throw refused('has a comment that is never closed');
}

function endOfQuote(statement: string, start: number, quote: string, escapes: boolean): number {
  for (let at = start + 1; at < statement.length; at += 1) {
    const character = statement.charAt(at);
    if (escapes && character === '\\') at += 1;
    else if (character === quote) {
      if (statement.charAt(at + 1) !== quote) return at + 1;
      at += 1;
    }
  }
  throw refused(`has a ${quote} that is never closed`);
}

/** `E'...'`: a backslash escapes the quote. */
function isEscapeString(statement: string, quoteAt: number): boolean {
  return /[eE]/.test(before(statement, quoteAt)) && !WORD.test(before(statement, quoteAt - 1));
}

/** After a word, a number or a bracket a colon is an array slice (`tags[1:n]`), not a name. */
function nameAt(statement: string, at: number): string | undefined {
  const previous = before(statement, at);
  if (statement.charAt(at) !== ':' || WORD.test(previous) || previous === ']' || previous === ')')
    return undefined;
  NAME.lastIndex = at + 1;
  return NAME.exec(statement)?.[0];
}

function before(statement: string, at: number): string {
  return at > 0 ? statement.charAt(at - 1) : '';
}

function refused(problem: string): TrueupError {
  return new TrueupError('TRU_SQL_STATEMENT', `the sql statement ${problem}`, { exit: EXIT.usage });
}
