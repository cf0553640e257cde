import type { Value } from '../record.ts';
import { canonicalise } from '../value/canonicalise.ts';
import type { Column } from './mysql-columns.ts';
import { quoteIdentifier } from './mysql-sql.ts';
import type { Dialect } from './record-reader.ts';

/** How a column is selected so that its text is exact. */
export function selected({ name, kind }: Column): string {
  const quoted = quoteIdentifier(name);
  // The server writes a float with six digits. As a double it keeps all that it has.
  return kind === 'float' ? `${quoted} + 0e0` : quoted;
}

export const MYSQL_CELLS: Dialect<Column, Buffer> = {
  /** A time without zone is taken for UTC unless its rule names a zone; `trueup check` says so. */
  zoneOf: ({ kind }) => (kind === 'datetime' || kind === 'date' || kind === 'timestamp' ? 'UTC' : undefined),
  valueOf(raw, { column, type, zone }): Value {
    if (raw === null) return { type: 'null' };
    switch (column.kind) {
      case 'bit':
        return canonicalise(BigInt(`0x${raw.toString('hex') || '0'}`).toString(), type);
      case 'float':
        return canonicalise(shortestFloat(raw.toString('latin1')), type);
      case 'time':
        return canonicalise(withoutZeros(raw.toString('latin1')), type);
      case 'bytes':
        return type === 'bytes' || type === 'uuid'
          ? canonicalise(raw.toString('hex'), type)
          : fromBytes(raw, (text) => canonicalise(text, type, { zone }));
      case 'timestamp':
        // The session is in UTC, whatever zone a rule names.
        return canonicalise(raw.toString('latin1'), type, { zone: 'UTC' });
      default:
        return canonicalise(raw.toString('utf8'), type, { zone });
    }
  },
};

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Bytes that a rule calls text must be UTF-8: a replaced character would make different bytes equal. */
function fromBytes(raw: Buffer, read: (text: string) => Value): Value {
  try {
    return read(UTF8.decode(raw));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return { type: 'undecided', text: raw.toString('hex'), reason: 'bytes that are no UTF-8 text' };
  }
}

/** The shortest text that names a 32-bit float: `14.22035`, and not its 64-bit neighbour `14.22035026550293`. */
function shortestFloat(text: string): string {
  const exact = Number(text);
  for (let digits = 1; digits <= 9; digits += 1) {
    const short = exact.toPrecision(digits);
    if (Math.fround(Number(short)) === exact) return short;
  }
  return text;
}

/** `12:30:00.500000` of a column with six digits is `12:30:00.5`. */
function withoutZeros(time: string): string {
  return time.includes('.') ? time.replace(/\.?0+$/, '') : time;
}
