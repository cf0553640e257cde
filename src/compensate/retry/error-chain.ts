import { inspect } from 'node:util';
import type { ErrorRecord } from '../action.ts';

/** Causes deeper than this are cut: real chains are short, and a cycle must end somewhere. */
const MAX_DEPTH = 10;

/** Most errors kept of one tree, so that an AggregateError of thousands stays a small row. */
const MAX_ERRORS = 20;

/** Most characters kept of one message or stack: the record becomes a row. */
const MAX_TEXT = 16_000;

/** An `ErrorRecord` that also keeps the members of an AggregateError. */
export interface ErrorTree extends ErrorRecord {
  readonly cause: ErrorTree | null;
  readonly errors: readonly ErrorTree[];
}

/**
 * Everything thrown, as plain JSON: name, message, code and stack of the error, of its causes to a depth of 10, and
 * of the members of an AggregateError; each error once. Takes anything that can be thrown and never throws itself.
 */
export function errorRecord(error: unknown): ErrorTree {
  return recordOf(error, 0, new Set());
}

/** The error, its causes and the members of aggregates, outermost first, each once. */
export function errorChain(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  let level: readonly unknown[] = [error];
  for (let depth = 0; depth <= MAX_DEPTH && level.length > 0; depth++) {
    const fresh = [...new Set(level)].filter((each) => !chain.includes(each));
    const kept = fresh.slice(0, MAX_ERRORS - chain.length);
    chain.push(...kept);
    level = kept.flatMap((each) => [...causesOf(each), ...membersOf(each)]);
  }
  return chain;
}

/** Reads a property of whatever was thrown. A getter that throws counts as an absent property. */
export function property(error: unknown, name: string): unknown {
  if ((typeof error !== 'object' && typeof error !== 'function') || error === null) return undefined;
  try {
    return (error as Record<string, unknown>)[name];
  } catch {
    return undefined;
  }
}

/** The members of an AggregateError (or of an error shaped like one); none for other errors. */
export function membersOf(error: unknown): readonly unknown[] {
  const errors = property(error, 'errors');
  return Array.isArray(errors) ? errors : [];
}

/** The message of what was thrown; a description of it when it has none. Always a string. */
export function messageOf(error: unknown): string {
  const message = property(error, 'message');
  if (typeof message === 'string') return message;
  if (typeof error === 'string') return error;
  try {
    return inspect(error, { depth: 2 });
  } catch {
    return 'something that cannot be printed was thrown';
  }
}

function causesOf(error: unknown): readonly unknown[] {
  const cause = property(error, 'cause');
  return cause === undefined || cause === null ? [] : [cause];
}

function recordOf(error: unknown, depth: number, seen: Set<unknown>): ErrorTree {
  seen.add(error);
  const follow = (next: readonly unknown[]): ErrorTree[] =>
    next.flatMap((each) =>
      depth >= MAX_DEPTH || seen.size >= MAX_ERRORS || seen.has(each)
        ? []
        : [recordOf(each, depth + 1, seen)],
    );
  const stack = property(error, 'stack');
  return {
    name: nameOf(error),
    message: clean(messageOf(error)),
    code: codeOf(error),
    stack: typeof stack === 'string' ? clean(stack) : null,
    cause: follow(causesOf(error))[0] ?? null,
    errors: follow(membersOf(error)),
  };
}

function nameOf(error: unknown): string {
  const name = property(error, 'name');
  if (typeof name === 'string' && name !== '') return clean(name);
  return error === null ? 'null' : typeof error;
}

function codeOf(error: unknown): string | null {
  const code = property(error, 'code');
  if (typeof code === 'string') return clean(code);
  return typeof code === 'number' ? String(code) : null;
}

/** NUL and lone surrogates are replaced, because PostgreSQL refuses them in jsonb. */
function clean(text: string): string {
  const cut = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}… (cut)` : text;
  return cut.replaceAll('\0', '\uFFFD').replace(/\p{Surrogate}/gu, '\uFFFD');
}
