import { FRAME_HEAD, type RawFormat, readInt32 } from './frame-buffer.ts';

/**
 * How one part of the key sorts. `bytes`: as its bytes do. `signed`: as a whole number of fixed width, highest byte
 * first. `digits`: as a whole number in text.
 */
export type KeyPart = 'bytes' | 'signed' | 'digits';

/**
 * Orders the rows that begin at two places by their key, which is made of their first columns. NaN when a key has a
 * null in it or is empty in all parts: such rows cannot be paired.
 */
export type CompareFrames = (a: Buffer, at: number, b: Buffer, bt: number) => number;

/** The number of columns comes first. */
const FIRST_CELL = FRAME_HEAD + 2;

export function compareFramesBy(format: RawFormat, parts: readonly KeyPart[]): CompareFrames {
  return format === 'binary' ? binaryOrder(parts) : textOrder(parts);
}

function binaryOrder(parts: readonly KeyPart[]): CompareFrames {
  return parts.length === 1 && parts[0] === 'bytes' ? oneBinarySpan : binaryParts(parts);
}

/** The same as the general order, for the most frequent key. */
function oneBinarySpan(a: Buffer, at: number, b: Buffer, bt: number): number {
  const i = at + FIRST_CELL;
  const j = bt + FIRST_CELL;
  const m = readInt32(a, i);
  const n = readInt32(b, j);
  return m <= 0 || n <= 0 ? Number.NaN : compareSpans(a, i + 4, m, b, j + 4, n);
}

function binaryParts(parts: readonly KeyPart[]): CompareFrames {
  return (a, at, b, bt) => {
    let i = at + FIRST_CELL;
    let j = bt + FIRST_CELL;
    let order = 0;
    let filledA = 0;
    let filledB = 0;
    for (const part of parts) {
      const m = readInt32(a, i);
      const n = readInt32(b, j);
      if (m < 0 || n < 0) return Number.NaN;
      i += 4;
      j += 4;
      filledA |= m;
      filledB |= n;
      if (order === 0) {
        order = part === 'signed' ? compareSigned(a, i, b, j, m) : compareSpans(a, i, m, b, j, n);
      }
      i += m;
      j += n;
    }
    return filledA === 0 || filledB === 0 ? Number.NaN : order;
  };
}

function compareSpans(a: Buffer, i: number, m: number, b: Buffer, j: number, n: number): number {
  const length = Math.min(m, n);
  let k = 0;
  while (k < length && a[i + k] === b[j + k]) k += 1;
  return k < length ? (a[i + k] ?? 0) - (b[j + k] ?? 0) : m - n;
}

/** Two's complement sorts by its bytes once the sign is turned over. */
function compareSigned(a: Buffer, i: number, b: Buffer, j: number, length: number): number {
  const x = (a[i] ?? 0) ^ 0x80;
  const y = (b[j] ?? 0) ^ 0x80;
  if (x !== y) return x - y;
  return compareSpans(a, i + 1, length - 1, b, j + 1, length - 1);
}

const TAB = 0x09;
const NEWLINE = 0x0a;
const BACKSLASH = 0x5c;
const NULL_MARK = 0x4e; // N
const MINUS = 0x2d;

/** What a byte after a backslash stands for; all others stand for themselves. */
const ESCAPED: ReadonlyMap<number, number> = new Map([
  [0x62, 0x08],
  [0x66, 0x0c],
  [0x6e, 0x0a],
  [0x72, 0x0d],
  [0x74, 0x09],
  [0x76, 0x0b],
]);

/** The byte that an escape stands for, from the byte after its backslash. */
export function unescaped(code: number): number {
  return ESCAPED.get(code) ?? code;
}

function textOrder(parts: readonly KeyPart[]): CompareFrames {
  return (a, at, b, bt) => {
    let i = at + FRAME_HEAD;
    let j = bt + FRAME_HEAD;
    let order = 0;
    let filledA = false;
    let filledB = false;
    for (const part of parts) {
      if (isNull(a, i) || isNull(b, j)) return Number.NaN;
      const m = endOfCell(a, i);
      const n = endOfCell(b, j);
      filledA ||= m > i;
      filledB ||= n > j;
      if (order === 0)
        order = part === 'digits' ? compareDigits(a, i, m, b, j, n) : compareCells(a, i, m, b, j, n);
      i = m + 1;
      j = n + 1;
    }
    return filledA && filledB ? order : Number.NaN;
  };
}

function isNull(bytes: Buffer, at: number): boolean {
  return bytes[at] === BACKSLASH && bytes[at + 1] === NULL_MARK;
}

/** A tab or newline inside a value is escaped, so the first one ends the cell. */
function endOfCell(bytes: Buffer, at: number): number {
  let end = at;
  while (bytes[end] !== TAB && bytes[end] !== NEWLINE) end += 1;
  return end;
}

/** The order of the values, not of their escaped forms: a tab is written with a backslash, which is a larger byte. */
function compareCells(a: Buffer, at: number, m: number, b: Buffer, bt: number, n: number): number {
  let i = at;
  let j = bt;
  while (i < m && j < n) {
    let x = a[i] ?? 0;
    let y = b[j] ?? 0;
    if (x === BACKSLASH) {
      i += 1;
      x = unescaped(a[i] ?? 0);
    }
    if (y === BACKSLASH) {
      j += 1;
      y = unescaped(b[j] ?? 0);
    }
    if (x !== y) return x - y;
    i += 1;
    j += 1;
  }
  return i < m ? 1 : j < n ? -1 : 0;
}

/** Whole numbers without needless zeros: the longer one is larger, in the other direction below zero. */
function compareDigits(a: Buffer, i: number, m: number, b: Buffer, j: number, n: number): number {
  const negative = a[i] === MINUS;
  if (negative !== (b[j] === MINUS)) return negative ? -1 : 1;
  const order = m - i - (n - j) || compareSpans(a, i, m - i, b, j, n - j);
  return negative ? -order : order;
}
