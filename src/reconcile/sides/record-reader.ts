import type { Rule } from '../../config/schema.ts';
import { isInstant } from '../instant.ts';
import { UNUSABLE_KEY } from '../key.ts';
import type { Key, SideRecord, Value, ValueType } from '../record.ts';

/** How a cell is to be read. */
export interface Reading<Column> {
  readonly column: Column;
  readonly type: ValueType;
  /** IANA zone of local times; undefined where the text of a time names its own. */
  readonly zone: string | undefined;
}

/** What a database has to say about its cells. */
export interface Dialect<Column, Raw> {
  /** The zone of local times in a column whose rule names none. */
  readonly zoneOf: (column: Column) => string | undefined;
  readonly valueOf: (raw: Raw | null, reading: Reading<Column>) => Value;
}

export interface RecordReader<Column, Raw> {
  /** The columns of a row, in order, without repetition. */
  readonly columns: readonly Column[];
  readonly read: (row: readonly (Raw | null)[]) => SideRecord;
}

export interface RecordColumns<Column> {
  readonly keys: readonly { readonly column: Column; readonly type: ValueType }[];
  readonly time: { readonly column: Column; readonly zone: string } | null;
  readonly fields: readonly { readonly name: string; readonly column: Column }[];
  readonly rules: Readonly<Record<string, Rule>>;
  readonly keyNames: readonly string[];
}

/** Turns rows of a database into records. A column that stands for several names is selected once. */
export function recordReader<Column extends { readonly name: string; readonly type: ValueType }, Raw>(
  from: RecordColumns<Column>,
  dialect: Dialect<Column, Raw>,
): RecordReader<Column, Raw> {
  type Cell = Reading<Column> & { readonly index: number };
  const columns: Column[] = [];
  const cell = (column: Column, type: ValueType, zone: string | undefined): Cell => {
    const known = columns.findIndex(({ name }) => name === column.name);
    const index = known >= 0 ? known : columns.push(column) - 1;
    return { index, column, type, zone: zone ?? dialect.zoneOf(column) };
  };
  const keys = from.keys.map(({ column, type }, i) =>
    cell(column, type, from.rules[from.keyNames[i] ?? '']?.zone),
  );
  const time = from.time === null ? null : cell(from.time.column, 'instant', from.time.zone);
  const fields = from.fields.map(({ name, column }) => {
    const rule = from.rules[name];
    return [name, cell(column, rule?.type ?? column.type, rule?.zone)] as const;
  });
  const cellOf = (row: readonly (Raw | null)[], at: Cell) => dialect.valueOf(row[at.index] ?? null, at);
  const read = (row: readonly (Raw | null)[]): SideRecord => ({
    key: keyOf(keys.map((key) => cellOf(row, key))),
    time: time === null ? null : timeOf(cellOf(row, time)),
    fields: Object.fromEntries(fields.map(([name, field]) => [name, cellOf(row, field)])),
  });
  return { columns, read };
}

function keyOf(values: readonly Value[]): Key {
  const key: string[] = [];
  for (const value of values) {
    if (value.type === 'null' || value.type === 'undecided') return UNUSABLE_KEY;
    key.push(value.text);
  }
  return key;
}

function timeOf(value: Value): SideRecord['time'] {
  return value.type === 'instant' && isInstant(value.text) ? value.text : null;
}
