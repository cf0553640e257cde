import type { Key } from '../record.ts';
import type { KeyColumn } from './mysql-key.ts';

/** The optimizer gives up on an index when a statement asks for very many keys, and servers limit a statement's size. */
const MOST_KEYS = 1000;
const MOST_CHARACTERS = 500_000;

/** Conditions that together select all records with these keys. Keys that no value of the columns can have are left out. */
export function* keyConditions(
  columns: readonly KeyColumn[],
  keys: readonly Key[],
  pageSize: number,
): Generator<string> {
  const most = Math.min(pageSize, MOST_KEYS);
  let batch: (readonly string[])[] = [];
  let characters = 0;
  for (const key of keys) {
    const literals = literalsOf(columns, key);
    if (literals === undefined) continue;
    batch.push(literals);
    characters += literals.reduce((sum, literal) => sum + literal.length, 0);
    if (batch.length < most && characters < MOST_CHARACTERS) continue;
    yield condition(columns, batch);
    batch = [];
    characters = 0;
  }
  if (batch.length > 0) yield condition(columns, batch);
}

function literalsOf(columns: readonly KeyColumn[], key: Key): readonly string[] | undefined {
  if (key.length !== columns.length) return undefined;
  const literals: string[] = [];
  for (const [i, column] of columns.entries()) {
    const literal = column.literal(key[i] ?? '');
    if (literal === undefined) return undefined;
    literals.push(literal);
  }
  return literals;
}

function condition(columns: readonly KeyColumn[], batch: readonly (readonly string[])[]): string {
  const [only] = columns;
  if (columns.length === 1 && only !== undefined) {
    return `${only.lookup} in (${batch.map(([literal]) => literal).join(', ')})`;
  }
  const one = (literals: readonly string[]) =>
    columns.map(({ lookup }, i) => `${lookup} = ${literals[i]}`).join(' and ');
  return `((${batch.map(one).join(') or (')}))`;
}
