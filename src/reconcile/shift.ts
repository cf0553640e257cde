import type { FieldDifference, Finding } from './record.ts';
import { type Decimal, decimalOf, subtract } from './value/decimal.ts';
import { microsOf } from './value/instant.ts';

export interface Shift {
  readonly kind: 'constant time offset' | 'constant factor' | 'constant offset';
  readonly field: string;
  /** From source to downstream: `60 minutes`, `100` or `1/7` times, or a number that was added. */
  readonly amount: string;
  /** Records that show it, of so many mismatched ones. */
  readonly records: number;
  readonly of: number;
}

/** A shift is a pattern from this many mismatched records, in at least this share of them. */
const MIN_SHIFTED = 10;
const MOST = 0.8;
const QUARTER_HOUR_US = 900_000_000n;
/** Zones are at most 14 hours from UTC, and 26 hours from each other. */
const LARGEST_ZONE_SHIFT_US = 26n * 3_600_000_000n;

/** The same shift in one field of most mismatched records: a clock or a unit is wrong, not the records. */
export function constantShift(sample: readonly Pick<Finding, 'fields'>[]): Shift | undefined {
  const fields = new Set(sample.flatMap((finding) => finding.fields.map((each) => each.field)));
  for (const field of fields) {
    const differences = sample.flatMap((finding) => finding.fields.filter((each) => each.field === field));
    if (differences.length < MIN_SHIFTED || differences.length < sample.length * MOST) continue;
    const found =
      constant('constant time offset', field, differences, sample.length, timeOffset) ??
      constant('constant factor', field, differences, sample.length, factor) ??
      constant('constant offset', field, differences, sample.length, offset);
    if (found !== undefined) return found;
  }
  return undefined;
}

function constant(
  kind: Shift['kind'],
  field: string,
  differences: readonly FieldDifference[],
  of: number,
  measure: (difference: FieldDifference) => string | undefined,
): Shift | undefined {
  for (const [amount, sources] of sourcesByAmount(differences, measure)) {
    if (sources.length < MIN_SHIFTED || sources.length < of * MOST) continue;
    // Two states stored as numbers also differ by a constant; a unit or a fee shows on several values.
    if (new Set(sources).size < 3) continue;
    return { kind, field, amount, records: sources.length, of };
  }
  return undefined;
}

function sourcesByAmount(
  differences: readonly FieldDifference[],
  measure: (difference: FieldDifference) => string | undefined,
): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const difference of differences) {
    const amount = measure(difference);
    if (amount === undefined) continue;
    const group = groups.get(amount) ?? [];
    group.push(textOf(difference.source));
    groups.set(amount, group);
  }
  return groups;
}

function timeOffset({ source, downstream }: FieldDifference): string | undefined {
  if (source.type !== 'instant' || downstream.type !== 'instant') return undefined;
  const [a, b] = [microsOf(source.text), microsOf(downstream.text)];
  if (a === undefined || b === undefined) return undefined;
  const micros = b - a;
  const size = micros < 0n ? -micros : micros;
  if (size === 0n || size % QUARTER_HOUR_US !== 0n || size > LARGEST_ZONE_SHIFT_US) return undefined;
  return `${micros / 60_000_000n} minutes`;
}

function factor(difference: FieldDifference): string | undefined {
  const pair = decimalsOf(difference);
  if (pair === undefined || pair[0].units === 0n || pair[1].units === 0n) return undefined;
  const [a, b] = pair;
  const numerator = b.units * 10n ** BigInt(a.scale);
  const denominator = a.units * 10n ** BigInt(b.scale);
  const divisor = gcd(numerator, denominator) * (denominator < 0n ? -1n : 1n);
  const [n, d] = [numerator / divisor, denominator / divisor];
  return d === 1n ? `${n}` : `${n}/${d}`;
}

function offset(difference: FieldDifference): string | undefined {
  const pair = decimalsOf(difference);
  if (pair === undefined) return undefined;
  let { units, scale } = subtract(pair[1], pair[0]);
  for (; scale > 0 && units % 10n === 0n; scale -= 1) units /= 10n;
  return scale === 0 ? `${units}` : `${units}e-${scale}`;
}

function decimalsOf({ source, downstream }: FieldDifference): [Decimal, Decimal] | undefined {
  if (!isExactNumber(source) || !isExactNumber(downstream)) return undefined;
  const [a, b] = [decimalOf(textOf(source)), decimalOf(textOf(downstream))];
  return a === undefined || b === undefined ? undefined : [a, b];
}

function isExactNumber(value: FieldDifference['source']): boolean {
  return value.type === 'decimal' || value.type === 'integer';
}

function textOf(value: FieldDifference['source']): string {
  return value.type === 'null' ? '' : value.text;
}

function gcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}
