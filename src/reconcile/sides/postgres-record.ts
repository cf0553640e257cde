import type { Rule } from '../../config/schema.ts';
import { isInstant } from '../instant.ts';
import { UNUSABLE_KEY } from '../key.ts';
import type { Key, SideRecord, Value, ValueType } from '../record.ts';
import { canonicalise } from '../value/canonicalise.ts';
import { type Column, OID } from './postgres-columns.ts';
import type { KeyColumn } from './postgres-key.ts';
import type { Row } from './postgres-session.ts';

/** One cell of a row and how it is read. */
interface Cell {
  readonly index: number;
  readonly column: Column;
  readonly type: ValueType;
  readonly zone: string | undefined;
}

export interface RecordReader {
  /** The columns of a row, in order, without repetition. */
  readonly columns: readonly string[];
  readonly read: (row: Row) => SideRecord;
}

export interface RecordColumns {
  readonly keys: readonly KeyColumn[];
  readonly time: { readonly column: Column; readonly zone: string } | null;
  readonly fields: readonly { readonly name: string; readonly column: Column }[];
  readonly rules: Readonly<Record<string, Rule>>;
  readonly keyNames: readonly string[];
}

export function recordReader(from: RecordColumns): RecordReader {
  const columns: string[] = [];
  const cell = (column: Column, rule: Rule | undefined, type: ValueType): Cell => {
    const known = columns.indexOf(column.name);
    const index = known >= 0 ? known : columns.push(column.name) - 1;
    return { index, column, type, zone: rule?.zone ?? zoneOfWallTime(column) };
  };
  const keys = from.keys.map((key, i) => cell(key.column, from.rules[from.keyNames[i] ?? ''], key.type));
  const time =
    from.time === null ? null : { ...cell(from.time.column, undefined, 'instant'), zone: from.time.zone };
  const fields = from.fields.map(({ name, column }) => {
    const rule = from.rules[name];
    return [name, cell(column, rule, rule?.type ?? column.type)] as const;
  });
  const read = (row: Row): SideRecord => ({
    key: readKey(row, keys),
    time: time === null ? null : readTime(row, time),
    fields: Object.fromEntries(fields.map(([name, field]) => [name, readCell(row, field)])),
  });
  return { columns, read };
}

/** A time without zone is taken for UTC unless its rule names a zone; `trueup check` says so. */
function zoneOfWallTime(column: Column): string | undefined {
  return column.oid === OID.timestamp || column.oid === OID.date ? 'UTC' : undefined;
}

function readCell(row: Row, cell: Cell): Value {
  const raw = row[cell.index] ?? null;
  // The blanks that fill up a char(n) are not part of the value.
  const text = raw !== null && cell.column.oid === OID.bpchar ? raw.replace(/ +$/, '') : raw;
  return canonicalise(text, cell.type, { zone: cell.zone });
}

function readKey(row: Row, cells: readonly Cell[]): Key {
  const key: string[] = [];
  for (const cell of cells) {
    const value = readCell(row, cell);
    if (value.type === 'null' || value.type === 'undecided') return UNUSABLE_KEY;
    key.push(value.text);
  }
  return key;
}

function readTime(row: Row, cell: Cell): SideRecord['time'] {
  const value = readCell(row, cell);
  return value.type === 'instant' && isInstant(value.text) ? value.text : null;
}
