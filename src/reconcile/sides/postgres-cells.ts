import type { RawFormat } from '../raw/frame-buffer.ts';
import { unescaped } from '../raw/frame-key.ts';
import { OID } from './postgres-columns.ts';
import type { Row } from './postgres-session.ts';

/** Reads the cells of one row of a COPY, as the texts that a SELECT would give. */
export type ReadCells = (payload: Buffer) => Row;

/** True when a value of this type can be read from the binary format. */
export function isBinaryReadable(oid: number): boolean {
  return BINARY.has(oid);
}

export function cellReader(format: RawFormat, oids: readonly number[]): ReadCells {
  if (format === 'text') return readTextRow;
  const readers = oids.map((oid) => BINARY.get(oid));
  return (payload) => {
    const row: (string | null)[] = [];
    let at = 2;
    for (const read of readers) {
      const length = payload.readInt32BE(at);
      at += 4;
      if (length < 0) row.push(null);
      else {
        row.push(read?.(payload.subarray(at, at + length)) ?? null);
        at += length;
      }
    }
    return row;
  };
}

const BACKSLASH = 0x5c;

/** A row of the text format: cells between tabs, a newline at the end, `\N` for null. */
function readTextRow(payload: Buffer): Row {
  const end = payload.length - 1;
  const row: (string | null)[] = [];
  for (let from = 0; from <= end; ) {
    const tab = payload.indexOf(0x09, from);
    const to = tab < 0 ? end : tab;
    row.push(readTextCell(payload.subarray(from, to)));
    from = to + 1;
  }
  return row;
}

function readTextCell(cell: Buffer): string | null {
  if (!cell.includes(BACKSLASH)) return cell.toString('utf8');
  if (cell.length === 2 && cell[1] === 0x4e) return null;
  const plain = Buffer.allocUnsafe(cell.length);
  let length = 0;
  for (let i = 0; i < cell.length; i += 1) {
    let byte = cell[i] ?? 0;
    if (byte === BACKSLASH) {
      i += 1;
      byte = unescaped(cell[i] ?? 0);
    }
    plain[length] = byte;
    length += 1;
  }
  return plain.toString('utf8', 0, length);
}

const asIs = (cell: Buffer): string => cell.toString('utf8');

const BINARY: ReadonlyMap<number, (cell: Buffer) => string> = new Map<number, (cell: Buffer) => string>([
  [OID.boolean, (cell) => (cell[0] === 1 ? 't' : 'f')],
  [OID.bytea, (cell) => `\\x${cell.toString('hex')}`],
  [OID.int2, (cell) => String(cell.readInt16BE())],
  [OID.int4, (cell) => String(cell.readInt32BE())],
  [OID.int8, (cell) => String(cell.readBigInt64BE())],
  [OID.text, asIs],
  [OID.varchar, asIs],
  [OID.bpchar, asIs],
  [OID.json, asIs],
  // A version number stands before the text.
  [OID.jsonb, (cell) => asIs(cell.subarray(1))],
  [OID.float4, (cell) => shortestSingle(cell.readFloatBE())],
  [OID.float8, (cell) => String(cell.readDoubleBE())],
  [OID.numeric, readNumeric],
  [OID.uuid, readUuid],
  [OID.date, (cell) => readDate(cell.readInt32BE())],
  [OID.timestamp, (cell) => readTimestamp(cell.readBigInt64BE(), '')],
  [OID.timestamptz, (cell) => readTimestamp(cell.readBigInt64BE(), '+00')],
]);

/** The shortest text that names the same single-precision number, as the server writes it. */
function shortestSingle(value: number): string {
  for (let digits = 1; digits < 9; digits += 1) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return text;
  }
  return Number.isFinite(value) ? value.toPrecision(9) : String(value);
}

function readUuid(cell: Buffer): string {
  const hex = cell.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

const NUMERIC_SIGNS: Readonly<Record<number, string>> = {
  0: '',
  16384: '-',
  49152: 'NaN',
  53248: 'Infinity',
  61440: '-Infinity',
};

/** Groups of four decimal digits: their number, the weight of the first, a sign, and how many digits are shown. */
function readNumeric(cell: Buffer): string {
  const groups = cell.readUInt16BE(0);
  const weight = cell.readInt16BE(2);
  const sign = NUMERIC_SIGNS[cell.readUInt16BE(4)] ?? '';
  const scale = cell.readUInt16BE(6);
  if (sign.length > 1) return sign;
  const digits = (place: number): string => {
    const index = weight - place;
    return index < 0 || index >= groups ? '0000' : String(cell.readUInt16BE(8 + 2 * index)).padStart(4, '0');
  };
  let whole = '';
  for (let place = weight; place >= 0; place -= 1) whole += digits(place);
  let fraction = '';
  for (let place = -1; fraction.length < scale; place -= 1) fraction += digits(place);
  const shown = whole.replace(/^0+(?=\d)/, '') || '0';
  return scale === 0 ? sign + shown : `${sign}${shown}.${fraction.slice(0, scale)}`;
}

/** Days from the epoch of Unix to that of PostgreSQL, 2000-01-01. */
const EPOCH_DAYS = 10_957;
const DAY_US = 86_400_000_000n;
const DAY_MS = 86_400_000;

function readDate(days: number): string {
  if (days === 0x7fffffff) return 'infinity';
  if (days === -0x80000000) return '-infinity';
  return writeDate(days) + era(days);
}

function readTimestamp(micros: bigint, zone: string): string {
  if (micros === 0x7fffffffffffffffn) return 'infinity';
  if (micros === -0x8000000000000000n) return '-infinity';
  const inDay = ((micros % DAY_US) + DAY_US) % DAY_US;
  const days = Number((micros - inDay) / DAY_US);
  const seconds = Number(inDay / 1_000_000n);
  const clock = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
  const fraction = String(inDay % 1_000_000n)
    .padStart(6, '0')
    .replace(/0+$/, '');
  return `${writeDate(days)} ${clock}${fraction === '' ? '' : `.${fraction}`}${zone}${era(days)}`;
}

/** PostgreSQL's calendar reaches further than that of Date on both ends; 400 years have the same days everywhere. */
const CYCLE_YEARS = 400;
const CYCLE_DAYS = 146_097;

function yearOf(days: number): { readonly year: number; readonly rest: string } {
  const cycles = Math.floor(days / CYCLE_DAYS);
  const text = new Date((days - cycles * CYCLE_DAYS + EPOCH_DAYS) * DAY_MS).toISOString();
  return { year: Number(text.slice(0, 4)) + cycles * CYCLE_YEARS, rest: text.slice(4, 10) };
}

function writeDate(days: number): string {
  const { year, rest } = yearOf(days);
  // There is no year 0: the one before 1 is 1 BC.
  return String(year > 0 ? year : 1 - year).padStart(4, '0') + rest;
}

function era(days: number): string {
  return yearOf(days).year > 0 ? '' : ' BC';
}
