import type { Rule } from '../../config/schema.ts';
import { type Instant, isInstant } from '../instant.ts';
import type { ValueType } from '../record.ts';
import { canonicalDate } from '../value/date.ts';
import { localTimeOf } from '../value/instant.ts';
import { foldsKey, WHITE_SPACE } from '../value/text.ts';
import { type Column, OID } from './postgres-columns.ts';
import { quoteIdentifier } from './postgres-sql.ts';

/** How one part of the business key is read, sorted and looked up in its column. */
export interface KeyColumn {
  readonly column: Column;
  readonly type: ValueType;
  /** Compared with the parameters of a lookup; the plain column where that lets an index help. */
  readonly lookup: string;
  /** Type of a parameter. */
  readonly cast: string;
  /** Sorts as the bytes of the canonical text. */
  readonly order: string;
  /** The parameter for a canonical key part; undefined when no value of this column can have that text. */
  readonly bind: (part: string) => string | undefined;
}

type Reading = Omit<KeyColumn, 'column' | 'type'>;

/**
 * Chooses the reading of a key part. Returns a sentence instead when the column makes no key that can be looked up
 * by its canonical text: then a lookup would miss records, and each miss would look like a difference.
 */
export function keyColumnOf(
  name: string,
  column: Column,
  rule: Rule | undefined,
  utf8: boolean,
): KeyColumn | string {
  const type = rule?.type ?? column.type;
  if (column.type === 'float' || column.type === 'json') {
    return `key part ${name}: a column of type ${column.native} cannot identify records`;
  }
  const folding = rule !== undefined && foldsKey(rule) ? rule : undefined;
  if (folding !== undefined && (type !== 'text' || !utf8)) {
    return `key part ${name}: only texts of a UTF-8 database can be padded, trimmed or compared without case`;
  }
  const reading =
    folding === undefined
      ? readingOf(column, type, rule?.zone ?? 'UTC', utf8)
      : asText(foldedText(column, folding), utf8);
  if (reading === undefined) {
    return `key part ${name} is to be read as ${type}, but its column is ${column.native}; leave the type out, or use a view with a column of that type`;
  }
  return { column, type, ...reading };
}

function readingOf(column: Column, type: ValueType, zone: string, utf8: boolean): Reading | undefined {
  const quoted = quoteIdentifier(column.name);
  if (type === column.type && type !== 'text') return typedReading(column, quoted, zone);
  if (type === 'text') return textReading(column, quoted, utf8);
  if (type === 'uuid' && column.type === 'text') return { ...asText(`lower(${quoted})`, utf8), bind: uuid };
  const bothWhole = type === 'integer' && column.type === 'decimal';
  const bothNumbers = type === 'decimal' && column.type === 'integer';
  return bothWhole || bothNumbers ? typedReading(column, quoted, zone) : undefined;
}

function typedReading(column: Column, quoted: string, zone: string): Reading | undefined {
  const plain = { lookup: quoted, order: quoted };
  switch (column.oid) {
    case OID.int2:
      return integer(quoted, 'int2', 16);
    case OID.int4:
      return integer(quoted, 'int4', 32);
    case OID.int8:
      return integer(quoted, 'int8', 64);
    case OID.numeric:
      return {
        lookup: quoted,
        cast: 'numeric',
        order: `trim_scale(${quoted})::text collate "C"`,
        bind: numeric,
      };
    case OID.uuid:
      return { ...plain, cast: 'uuid', bind: uuid };
    case OID.boolean:
      return { ...plain, cast: 'bool', bind: (part) => (/^(true|false)$/.test(part) ? part : undefined) };
    case OID.bytea:
      return {
        ...plain,
        cast: 'bytea',
        bind: (part) => (/^([0-9a-f]{2})*$/.test(part) ? `\\x${part}` : undefined),
      };
    case OID.date:
      return {
        ...plain,
        cast: 'date',
        bind: (part) => (isYearOne(part) && canonicalDate(part) ? part : undefined),
      };
    case OID.timestamptz:
      return { ...plain, cast: 'timestamptz', bind: (part) => bindInstant(part, (instant) => instant) };
    case OID.timestamp:
      return {
        ...plain,
        cast: 'timestamp',
        bind: (part) => bindInstant(part, (at) => localTimeOf(at, zone)),
      };
    default:
      return undefined;
  }
}

/** Whole numbers sort as text: the engine orders keys by the bytes of their text, `10` before `9`. */
function integer(quoted: string, cast: string, bits: number): Reading {
  const bind = (part: string) =>
    /^-?\d{1,19}$/.test(part) && BigInt.asIntN(bits, BigInt(part)) === BigInt(part) ? part : undefined;
  return { lookup: quoted, cast, order: `${quoted}::text collate "C"`, bind };
}

function textReading(column: Column, quoted: string, utf8: boolean): Reading {
  if (column.oid === OID.text || column.oid === OID.varchar) {
    const order = utf8 && column.sortsByBytes ? quoted : byBytes(quoted, utf8);
    return { lookup: quoted, cast: 'text', order, bind: withoutNul };
  }
  if (column.oid === OID.bpchar) {
    return { lookup: quoted, cast: 'bpchar', order: byBytes(`${quoted}::text`, utf8), bind: withoutNul };
  }
  return asText(`${quoted}::text`, utf8);
}

/** `foldKey` in SQL: the same text for every text, whatever collation or locale the database has. */
function foldedText(column: Column, rule: Rule): string {
  let text = `${quoteIdentifier(column.name)}::text`;
  if (rule.padded) text = `rtrim(${text}, ' ')`;
  if (rule.trim) text = `btrim(${text}, '${WHITE_SPACE}')`;
  if (!rule.ignoreCase) return text;
  return `translate(${text}, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')`;
}

function asText(expression: string, utf8: boolean): Reading {
  return { lookup: expression, cast: 'text', order: byBytes(expression, utf8), bind: withoutNul };
}

function byBytes(expression: string, utf8: boolean): string {
  return utf8 ? `${expression} collate "C"` : `convert_to(${expression}::text, 'UTF8')`;
}

/** PostgreSQL has no text with a NUL in it. */
function withoutNul(part: string): string | undefined {
  return part.includes('\0') ? undefined : part;
}

function uuid(part: string): string | undefined {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(part) ? part : undefined;
}

function numeric(part: string): string | undefined {
  return /^(NaN|-?\d{1,2000}(\.\d{1,2000})?)$/.test(part) ? part : undefined;
}

function bindInstant(part: string, bind: (instant: Instant) => string): string | undefined {
  if (part === 'infinity' || part === '-infinity') return part;
  return isInstant(part) && isYearOne(part) ? bind(part) : undefined;
}

/** PostgreSQL has no year 0. */
function isYearOne(part: string): boolean {
  return !part.startsWith('0000');
}
