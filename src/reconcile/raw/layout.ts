import type { ValueType } from '../record.ts';
import type { RawFormat } from './frame-buffer.ts';
import type { KeyPart } from './frame-key.ts';

/** A column of a raw copy, as its side's catalogue has it. */
export interface RawColumn {
  /** Name of the key part or field. */
  readonly name: string;
  /** As the catalogue names it. */
  readonly native: string;
  /** Two columns of one type write equal values in equal bytes, in both formats. */
  readonly oid: number;
  readonly type: ValueType;
  /** The binary format of this type can be read back. */
  readonly binary: boolean;
  /** Blanks at the end fill it up and are not part of the value. */
  readonly padded: boolean;
}

export interface RawKeyColumn extends RawColumn {
  readonly kind: 'text' | 'integer' | 'uuid' | 'time';
}

/** What a side can offer to be compared by bytes: the key, then each compared field in the order of their names. */
export interface RawLayout {
  readonly keys: readonly RawKeyColumn[];
  readonly fields: readonly RawColumn[];
}

export interface RawFit {
  readonly format: RawFormat;
  readonly parts: readonly KeyPart[];
}

/**
 * How two layouts can be compared by their bytes, or a sentence about what stands in the way. Equal bytes must mean
 * equal values in every column; unequal ones may mean anything and are looked at.
 */
export function fitLayouts(source: RawLayout, downstream: RawLayout): RawFit | string {
  const a = [...source.keys, ...source.fields];
  const b = [...downstream.keys, ...downstream.fields];
  const pairs = a.map((column, i) => [column, b[i] ?? column] as const);
  const same = pairs.every(([x, y]) => x.oid === y.oid);
  const format = same && pairs.every(([x]) => x.binary) ? 'binary' : 'text';
  for (const [x, y] of pairs) {
    if (!meanTheSame(x, y)) {
      return `${x.name} is ${x.native} at the source and ${y.native} downstream, which write equal values in different bytes`;
    }
  }
  const parts: KeyPart[] = [];
  for (const key of source.keys) {
    const part = keyPart(key, format);
    if (part === undefined) {
      return `key part ${key.name} is ${key.native}, which sorts by its bytes only where all compared columns have the same simple types on both sides`;
    }
    parts.push(part);
  }
  return { format, parts };
}

/** Of columns of different types, text and whole numbers write equal values in the same text. */
function meanTheSame(a: RawColumn, b: RawColumn): boolean {
  if (a.oid === b.oid) return true;
  return a.type === b.type && (a.type === 'text' || a.type === 'integer') && !a.padded && !b.padded;
}

function keyPart({ kind }: RawKeyColumn, format: RawFormat): KeyPart | undefined {
  if (kind === 'integer') return format === 'binary' ? 'signed' : 'digits';
  if (kind === 'time') return format === 'binary' ? 'signed' : undefined;
  return 'bytes';
}
