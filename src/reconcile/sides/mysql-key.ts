import type { Rule } from '../../config/schema.ts';
import { isInstant } from '../instant.ts';
import type { ValueType } from '../record.ts';
import { canonicalDate } from '../value/date.ts';
import { localTimeOf } from '../value/instant.ts';
import type { Column } from './mysql-columns.ts';
import { bytesLiteral, collatedLiteral, quoteIdentifier, textLiteral } from './mysql-sql.ts';

/** How one part of the business key is read, sorted and looked up in its column. */
export interface KeyColumn {
  readonly column: Column;
  readonly type: ValueType;
  /** Compared with the literals of a lookup; the plain column where that lets an index help. */
  readonly lookup: string;
  /** Sorts as the bytes of the canonical text. */
  readonly order: string;
  /** The literal for a canonical key part; undefined when no value of this column can have that text. */
  readonly literal: (part: string) => string | undefined;
}

type Reading = Omit<KeyColumn, 'column' | 'type'>;

/**
 * Chooses the reading of a key part. Returns a sentence instead when the column makes no key that can be looked up
 * by its canonical text: then a lookup would miss records, and each miss would look like a difference.
 */
export function keyColumnOf(name: string, column: Column, rule: Rule | undefined): KeyColumn | string {
  const type = rule?.type ?? column.type;
  if (column.type === 'float' || column.type === 'json') {
    return `key part ${name}: a column of type ${column.native} cannot identify records`;
  }
  const reading = readingOf(column, type, rule?.zone ?? 'UTC');
  if (reading === undefined) {
    return `key part ${name} is to be read as ${type}, but its column is ${column.native}; leave the type out, or use a view with a column of that type`;
  }
  return { column, type, ...reading };
}

function readingOf(column: Column, type: ValueType, zone: string): Reading | undefined {
  const quoted = quoteIdentifier(column.name);
  if (column.kind === 'bytes') return bytesReading(quoted, type);
  if (type === 'text') return textReading(column, quoted);
  if (type === 'uuid' && column.kind === 'text')
    return { ...textReading(column, quoted), ...uuidText(column, quoted) };
  const wholes = column.type === 'integer' || column.type === 'decimal';
  if (wholes && (type === 'integer' || type === 'decimal')) return numberReading(column, quoted);
  if (type !== column.type) return undefined;
  return column.kind === 'uuid' ? ownUuid(quoted) : timeReading(column, quoted, zone);
}

/** Hexadecimal sorts as the bytes do, and so does UTF-8; the hyphens of a uuid stand always in the same places. */
function bytesReading(quoted: string, type: ValueType): Reading | undefined {
  const plain = { lookup: quoted, order: quoted };
  const ofHex = (hex: string) => (/^([0-9a-f]{2})*$/.test(hex) ? bytesLiteral(hex) : undefined);
  if (type === 'bytes') return { ...plain, literal: ofHex };
  if (type === 'uuid') return { ...plain, literal: (part) => ofHex(part.replaceAll('-', '')) };
  if (type === 'text')
    return { ...plain, literal: (part) => bytesLiteral(Buffer.from(part).toString('hex')) };
  return undefined;
}

/** These collations compare by code point and count blanks at the end: their order is that of the bytes of UTF-8. */
const BY_BYTES = /^(utf8mb4_0900_bin|(utf8mb4|utf8mb3|utf8|ascii)_nopad_bin)$/;

function textReading(column: Column, quoted: string): Reading {
  if (column.kind === 'time') {
    return {
      lookup: quoted,
      order: `cast(cast(${quoted} as char) as binary)`,
      literal: (part) => (/^-?\d{2,3}(:[0-5]\d){2}(\.\d{1,6})?$/.test(part) ? `time'${part}'` : undefined),
    };
  }
  // Numbers, dates and the like by their text.
  if (column.text === null) {
    const text = `cast(${quoted} as char)`;
    return { lookup: text, order: `cast(${text} as binary)`, literal: textLiteral };
  }
  const { charset, collation } = column.text;
  // Labels sort by their number.
  const byItself = column.kind === 'text' && BY_BYTES.test(collation);
  return {
    lookup: quoted,
    order: byItself ? quoted : utf8Bytes(quoted),
    literal: (part) => collatedLiteral(part, charset, collation),
  };
}

function utf8Bytes(expression: string): string {
  return `cast(convert(${expression} using utf8mb4) as binary)`;
}

function uuidText(column: Column, quoted: string): Partial<Reading> {
  const order = utf8Bytes(`lower(${quoted})`);
  const folding = column.text?.collation.endsWith('_ci') === true;
  if (folding) return { order, literal: (part) => uuid(part, collatedIn(column)) };
  return {
    lookup: order,
    order,
    literal: (part) => uuid(part, (text) => bytesLiteral(Buffer.from(text).toString('hex'))),
  };
}

function collatedIn({ text }: Column): (part: string) => string {
  return (part) => (text === null ? textLiteral(part) : collatedLiteral(part, text.charset, text.collation));
}

function uuid(part: string, literal: (text: string) => string): string | undefined {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(part) ? literal(part) : undefined;
}

/** MariaDB's own uuid type sorts by other parts first. */
function ownUuid(quoted: string): Reading {
  return {
    lookup: quoted,
    order: `cast(cast(${quoted} as char) as binary)`,
    literal: (part) => uuid(part, (text) => `'${text}'`),
  };
}

/** Numbers sort as text: the engine orders keys by the bytes of their canonical text, `10` before `9`. */
function numberReading(column: Column, quoted: string): Reading {
  if (column.kind === 'decimal') {
    // Zeros at the end of a fraction are no part of the key, nor are those that fill a number up in front.
    const text = `cast(${quoted} + 0 as char)`;
    const trimmed = `trim(trailing '.' from trim(trailing '0' from ${text}))`;
    return {
      lookup: quoted,
      order: `cast(if(locate('.', ${text}) > 0, ${trimmed}, ${text}) as binary)`,
      literal: (part) => (/^-?\d{1,65}(\.\d{1,38})?$/.test(part) ? part : undefined),
    };
  }
  const whole = `cast(${quoted} as ${column.unsigned || column.kind !== 'integer' ? 'unsigned' : 'signed'})`;
  return {
    // A year compared with a short number would be taken for one of this or the last century.
    lookup: column.kind === 'year' ? whole : quoted,
    order: `cast(${whole} as binary)`,
    literal: (part) => (/^-?\d{1,20}$/.test(part) ? part : undefined),
  };
}

function timeReading(column: Column, quoted: string, zone: string): Reading | undefined {
  const plain = { lookup: quoted, order: quoted };
  switch (column.kind) {
    case 'date':
      return { ...plain, literal: (part) => (isDay(part) ? `date'${part}'` : undefined) };
    case 'timestamp':
      return { ...plain, literal: (part) => moment(part, (text) => text.replace('T', ' ').replace('Z', '')) };
    case 'datetime':
      return {
        ...plain,
        literal: (part) => (isInstant(part) ? `timestamp'${localTimeOf(part, zone)}'` : undefined),
      };
    default:
      return undefined;
  }
}

function moment(part: string, text: (instant: string) => string): string | undefined {
  return isInstant(part) ? `timestamp'${text(part)}'` : undefined;
}

function isDay(part: string): boolean {
  return !part.includes('infinity') && canonicalDate(part) !== undefined;
}
