import type { CatalogueColumn, CatalogueTable } from './catalogue.ts';
import type { TypeName } from './schema.ts';

/** Columns of both sides that seem to hold the same, under the source's name. */
export interface ColumnPair {
  readonly name: string;
  readonly source: CatalogueColumn;
  readonly downstream: CatalogueColumn;
  /** How the two compare; null when their types do not. */
  readonly type: TypeName | null;
  /** Their names say nothing; only their types fit. */
  readonly guessed?: true;
}

/** `order_no`, `orderNo` and `OrderNo` are one name. */
export function pairColumns(source: CatalogueTable, downstream: CatalogueTable): readonly ColumnPair[] {
  const byName = new Map(downstream.columns.map((column) => [plainName(column.name), column]));
  return source.columns.flatMap((column) => {
    const other = byName.get(plainName(column.name));
    if (other === undefined) return [];
    return [
      { name: column.name, source: column, downstream: other, type: commonType(column.native, other.native) },
    ];
  });
}

/** Unique keys of both tables that could be the same by number and type of their columns, none of them counted by a database. */
export function guessKeys(
  source: CatalogueTable,
  downstream: CatalogueTable,
): readonly (readonly ColumnPair[])[] {
  const given = (table: CatalogueTable) =>
    [table.primaryKey, ...table.uniqueKeys]
      .map((names) => names.flatMap((name) => table.columns.find((column) => column.name === name) ?? []))
      .filter((columns) => columns.length > 0 && columns.every((column) => !column.generated));
  return given(source).flatMap((ours) =>
    given(downstream).flatMap((theirs) => {
      const pairs = ours.flatMap((column, at) => guess(column, theirs[at]) ?? []);
      return pairs.length === ours.length && pairs.length === theirs.length ? [pairs] : [];
    }),
  );
}

/** Columns that are the only ones of their type left on both sides. */
export function guessFields(
  source: CatalogueTable,
  downstream: CatalogueTable,
  paired: readonly ColumnPair[],
): readonly ColumnPair[] {
  const left = (table: CatalogueTable, side: 'source' | 'downstream') =>
    table.columns.filter(
      (column) =>
        !column.generated &&
        !isBookkeeping(column) &&
        !paired.some((pair) => pair[side].name === column.name),
    );
  const [ours, theirs] = [left(source, 'source'), left(downstream, 'downstream')];
  return ours.flatMap((column) => {
    const fitting = theirs.filter((other) => commonType(column.native, other.native) !== null);
    const [other, ...more] = fitting;
    const rivals = ours.filter(
      (one) => other !== undefined && one !== column && commonType(one.native, other.native) !== null,
    );
    if (other === undefined || more.length + rivals.length > 0 || typeOfNative(column.native) === 'instant')
      return [];
    return guess(column, other) ?? [];
  });
}

function guess(source: CatalogueColumn, downstream: CatalogueColumn | undefined): ColumnPair | undefined {
  if (downstream === undefined) return undefined;
  const type = commonType(source.native, downstream.native);
  return type === null ? undefined : { name: source.name, source, downstream, type, guessed: true };
}

export function plainName(name: string): string {
  return name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '');
}

const NUMBERS: readonly TypeName[] = ['integer', 'decimal'];

function commonType(a: string, b: string): TypeName | null {
  const [left, right] = [typeOfNative(a), typeOfNative(b)];
  if (left === right) return left;
  if (NUMBERS.includes(left) && NUMBERS.includes(right)) return 'decimal';
  const identifiers: readonly TypeName[] = ['uuid', 'text'];
  return identifiers.includes(left) && identifiers.includes(right) ? 'text' : null;
}

const NATIVE: readonly (readonly [RegExp, TypeName])[] = [
  [/^(smallint|integer|bigint)$/, 'integer'],
  [/^(numeric|decimal)\b/, 'decimal'],
  [/^(real|double precision)$/, 'float'],
  [/^boolean$/, 'boolean'],
  [/^timestamp\b/, 'instant'],
  [/^date$/, 'date'],
  [/^uuid$/, 'uuid'],
  [/^jsonb?$/, 'json'],
  [/^bytea$/, 'bytes'],
];

/** Types without a rule of their own (enums, citext, domains) compare as the text they print. */
function typeOfNative(native: string): TypeName {
  return NATIVE.find(([pattern]) => pattern.test(native))?.[1] ?? 'text';
}

/** In the order of preference: a change moves the record into a window again, so that edits are seen too. */
const TIME_NAMES = [
  /^(updated|modified|changed)(at|on|time)?$/,
  /^(finished|completed|settled|booked|paid)(at|on|time)?$/,
  /^(created|inserted)(at|on|time)?$/,
  /(at|time|ts)$/,
];

/** Columns that could select the window, best first: with a zone before without, then by name. */
export function timeColumns(table: CatalogueTable): readonly CatalogueColumn[] {
  const rank = (column: CatalogueColumn): number => {
    const plain = plainName(column.name);
    const name = TIME_NAMES.findIndex((pattern) => pattern.test(plain));
    const kind = hasZone(column) ? 0 : column.native === 'date' ? 200 : 100;
    return kind + (column.nullable ? 10 : 0) + (name < 0 ? TIME_NAMES.length : name);
  };
  return table.columns
    .filter((column) => column.native.startsWith('timestamp') || column.native === 'date')
    .sort((a, b) => rank(a) - rank(b));
}

export function hasZone(column: CatalogueColumn): boolean {
  return column.native.endsWith('with time zone');
}

/** Each side stamps these itself; they never agree. */
export function isBookkeeping(column: CatalogueColumn): boolean {
  return /^(created|updated|modified|changed|inserted)(at|on|time|by)?$/.test(plainName(column.name));
}
