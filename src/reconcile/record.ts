import type { Instant } from './instant.ts';

/** Canonical values carry their type and one exact text. Equal type and text mean equal values. */
export const VALUE_TYPES = [
  'text',
  'integer',
  'decimal',
  'float',
  'boolean',
  'instant',
  'date',
  'time',
  'uuid',
  'json',
  'bytes',
  'array',
  'set',
] as const;
export type ValueType = (typeof VALUE_TYPES)[number];

export type Value =
  | { readonly type: 'null' }
  | {
      readonly type: ValueType;
      readonly text: string;
      /** Digits after the point as the side wrote them; only where a rule compares them. */
      readonly scale?: number;
      /** True for a float of 32 bits: it says less about its number than one of 64. */
      readonly single?: boolean;
    }
  /** A cell that cannot be read fairly (ambiguous local time, unreadable number): it makes its record undecided. */
  | { readonly type: 'undecided'; readonly text: string; readonly reason: string };

/** The business key: canonical texts, in the order of the reconciliation's `key`. Compared as bytes of UTF-8. */
export type Key = readonly string[];

export interface SideRecord {
  readonly key: Key;
  /** The key as it is stored, where a rule on a key field has folded `key` into another text. */
  readonly storedKey?: Key;
  /** The side's own time of the record, where it has one. */
  readonly time: Instant | null;
  /** Every mapped field, canonical, before the compare rules. */
  readonly fields: Readonly<Record<string, Value>>;
}

/** Half-open: `from <= time < to`. */
export interface Window {
  readonly from: Instant;
  readonly to: Instant;
}

export type DiffKind = 'missing' | 'extra' | 'mismatched' | 'duplicate';

export interface FieldDifference {
  readonly field: string;
  readonly source: Value;
  readonly downstream: Value;
  /** The rule that decided, in the words of `docs/reference/rules.md`. */
  readonly rule: string;
}

/** A field whose values are not the same and that only its rule makes equal. */
export interface Forgiven {
  readonly field: string;
  /** In the words of `docs/reference/rules.md`. */
  readonly rule: string;
}

/** A difference as one look saw it. Digests are keyed and cover every compared field of all records of the key. */
export interface Finding {
  readonly key: Key;
  readonly kind: DiffKind;
  readonly fields: readonly FieldDifference[];
  readonly source: SideRecord | null;
  readonly downstream: SideRecord | null;
  readonly sourceCount: number;
  readonly downstreamCount: number;
  readonly sourceDigest: string | null;
  readonly downstreamDigest: string | null;
}

/** What one look at one key says. */
export type Verdict =
  | {
      readonly verdict: 'match';
      readonly sourceDigest: string | null;
      /** Left out when the values are the same without any rule's help. */
      readonly forgiven?: readonly Forgiven[];
    }
  | { readonly verdict: 'differs'; readonly finding: Finding }
  | {
      readonly verdict: 'undecided';
      readonly key: Key;
      readonly reason: string;
      readonly finding: Finding | null;
    };

/** The form in which a key is stored and looked for: a JSON array, so that no separator can be part of a value. */
export function keyText(key: Key): string {
  return JSON.stringify(key);
}

export function keyFromText(text: string): Key {
  return JSON.parse(text) as Key;
}

/** How a key is shown to a person. */
export function displayKey(key: Key): string {
  return key.join(' / ');
}
