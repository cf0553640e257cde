import type { Rule } from '../../config/schema.ts';
import { isInstant } from '../instant.ts';
import { UNUSABLE_KEY } from '../key.ts';
import type { SideRecord, Value, ValueType } from '../record.ts';
import { type CanonicalOptions, canonicalise, readingBy } from '../value/canonicalise.ts';
import { foldKey, foldsKey } from '../value/text.ts';
import { type Column, OID } from './postgres-columns.ts';
import type { KeyColumn } from './postgres-key.ts';
import type { Row } from './postgres-session.ts';

/** One cell of a row and how it is read. */
interface Cell {
  readonly index: number;
  readonly column: Column;
  readonly type: ValueType;
  readonly reading: CanonicalOptions;
}

interface KeyCell extends Cell {
  /** Folds a part as the rule on its field wants it; null when the part stays as it is. */
  readonly fold: ((part: string) => string) | null;
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
    const by = readingBy(rule, column.type);
    const zone = by.zone ?? zoneOfWallTime(column);
    return { index, column, type, reading: { ...by, zone, single: column.oid === OID.float4 } };
  };
  const keys = from.keys.map((key, i): KeyCell => {
    const rule = from.rules[from.keyNames[i] ?? ''];
    const fold = rule !== undefined && foldsKey(rule) ? (part: string) => foldKey(part, rule) : null;
    return { ...cell(key.column, rule, key.type), fold };
  });
  const time =
    from.time === null
      ? null
      : { ...cell(from.time.column, undefined, 'instant'), reading: { zone: from.time.zone } };
  const fields = from.fields.map(({ name, column }) => {
    const rule = from.rules[name];
    return [name, cell(column, rule, rule?.type ?? column.type)] as const;
  });
  const read = (row: Row): SideRecord => ({
    ...readKey(row, keys),
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
  return canonicalise(text, cell.type, cell.reading);
}

function readKey(row: Row, cells: readonly KeyCell[]): Pick<SideRecord, 'key' | 'storedKey'> {
  const key: string[] = [];
  const stored: string[] = [];
  for (const cell of cells) {
    const value = readCell(row, cell);
    if (value.type === 'null' || value.type === 'undecided') return { key: UNUSABLE_KEY };
    stored.push(value.text);
    key.push(cell.fold === null ? value.text : cell.fold(value.text));
  }
  return cells.some(({ fold }) => fold !== null) ? { key, storedKey: stored } : { key };
}

function readTime(row: Row, cell: Cell): SideRecord['time'] {
  const value = readCell(row, cell);
  return value.type === 'instant' && isInstant(value.text) ? value.text : null;
}
