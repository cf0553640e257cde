import type { Path } from './path.ts';

/** What a config may ask for from outside the file. */
export interface Outside {
  /** An environment variable; `undefined` when it is not set. */
  env(name: string): string | undefined;
  /** The text of a file, or why it cannot be read. */
  file(path: string): { readonly text: string } | { readonly unreadable: string };
}

export interface Interpolated {
  /** The document with every `${...}` replaced. */
  readonly document: unknown;
  /** What came from `${env:...}` or a file, by the place it went to: possibly a secret. Defaults are not. */
  readonly values: readonly { readonly path: Path; readonly text: string }[];
  /** The string values that held a `${...}`, with the text of the file. */
  readonly interpolated: readonly { readonly path: Path; readonly written: string }[];
  readonly problems: readonly { readonly path: Path; readonly message: string; readonly hint: string }[];
}

const MARK = /\$\$\{|\$\{([^}]*)\}|\$\{/g;
const ENV = /^(env|plain):([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/;
const FILE = /^file:([\s\S]+)$/;
const ABSENT = Symbol('absent');
const FORMS = `write \${env:NAME}, \${env:NAME:-default}, \${plain:NAME} or \${file:/path}; a literal \${ is written $\${`;

/**
 * Replaces `${env:NAME}`, `${env:NAME:-default}` (the default also stands in for an empty variable) and
 * `${file:/path}` (without its last line break) in every string value. `$${` gives `${`. A value that is nothing but
 * `${env:NAME:-}` and stays empty is left out, so that `url: ${env:DATABASE_URL:-}` means "not set". `${plain:NAME}` is
 * `${env:NAME}` for a value that a person declares to be no secret.
 */
export function interpolate(document: unknown, outside: Outside): Interpolated {
  const values: { path: Path; text: string }[] = [];
  const interpolated: { path: Path; written: string }[] = [];
  const problems: { path: Path; message: string; hint: string }[] = [];

  const visit = (node: unknown, path: Path): unknown => {
    if (typeof node === 'string') return replace(node, path);
    if (Array.isArray(node)) return visitList(node, path);
    if (node === null || typeof node !== 'object') return node;
    return Object.fromEntries(
      Object.entries(node)
        .map(([key, value]) => [key, visit(value, [...path, key])] as const)
        .filter(([, value]) => value !== ABSENT),
    );
  };

  const visitList = (list: readonly unknown[], path: Path): unknown[] => {
    const kept: unknown[] = [];
    for (const item of list) {
      const value = visit(item, [...path, kept.length]);
      if (value !== ABSENT) kept.push(value);
    }
    return kept;
  };

  const replace = (written: string, path: Path): string | typeof ABSENT => {
    let found = false;
    const text = written.replace(MARK, (mark: string, inner: string | undefined) => {
      if (mark === '$${') return '${';
      found = true;
      const answer = resolve(inner, outside);
      if ('text' in answer) {
        if (answer.secret && answer.text !== '') values.push({ path, text: answer.text });
        return answer.text;
      }
      problems.push({ path, ...answer });
      return '';
    });
    if (text === '' && /^\$\{(env|plain):[^}]*:-\}$/.test(written)) return ABSENT;
    if (found) interpolated.push({ path, written });
    return text;
  };

  const top = visit(document, []);
  return { document: top === ABSENT ? undefined : top, values, interpolated, problems };
}

type Answer = { text: string; secret: boolean } | { message: string; hint: string };

function resolve(inner: string | undefined, outside: Outside): Answer {
  if (inner === undefined) return { message: `has a \${ without its }`, hint: FORMS };
  const env = ENV.exec(inner);
  if (env !== null) return resolveEnv(env[1] ?? '', env[2] ?? '', env[3], outside);
  const file = FILE.exec(inner);
  if (file === null) return { message: `cannot use \${${inner}}`, hint: FORMS };
  const path = file[1] ?? '';
  const answer = outside.file(path);
  if ('text' in answer) return { text: answer.text.replace(/\r?\n$/, ''), secret: true };
  return {
    message: `needs the file ${path}, which cannot be read (${answer.unreadable})`,
    hint: 'create the file, or give this process the right to read it',
  };
}

function resolveEnv(form: string, name: string, fallback: string | undefined, outside: Outside): Answer {
  const value = outside.env(name);
  if (fallback !== undefined && (value === undefined || value === ''))
    return { text: fallback, secret: false };
  if (value !== undefined) return { text: value, secret: form === 'env' };
  return {
    message: `needs the environment variable ${name}, which is not set`,
    hint: `set ${name}, or give a default: \${${form}:${name}:-default}`,
  };
}
