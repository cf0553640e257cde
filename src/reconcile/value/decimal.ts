/** An exact decimal number: `units / 10^scale`. */
export interface Decimal {
  readonly units: bigint;
  readonly scale: number;
}

const DECIMAL = /^\s*([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,9}))?\s*$/;
const SPECIAL = /^\s*([+-]?)(nan|inf|infinity)\s*$/i;

/** Beyond this many zeros the canonical text keeps an exponent, so that `1e999999999` stays small. */
const MAX_ZEROS = 1000;
/** Beyond this exponent no arithmetic is done: the numbers would fill the memory. */
const MAX_EXPONENT = 20_000;

/**
 * The one text of a decimal number: no exponent, no leading `+`, no needless zeros, so that equal numbers have
 * equal texts whatever their scale (`1.10`, `1.1`, `.11e1`). `NaN` and the infinities keep texts of their own.
 * `undefined` when the text is no number.
 */
export function canonicalDecimal(text: string): string | undefined {
  const parts = DECIMAL.exec(text);
  if (!parts) return special(text);
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = parts;
  if (whole === '' && fraction === '') return undefined;
  const significant = (whole + fraction).replace(/^0+/, '');
  const digits = significant.replace(/0+$/, '');
  if (digits === '') return '0';
  const power = Number(exponent) - fraction.length + (significant.length - digits.length);
  return (sign === '-' ? '-' : '') + place(digits, power);
}

/** The digits with their decimal point put where `digits * 10^power` wants it. */
function place(digits: string, power: number): string {
  if (Math.abs(power) > MAX_ZEROS + digits.length) return `${digits}e${power}`;
  if (power >= 0) return digits + '0'.repeat(power);
  const point = digits.length + power;
  if (point > 0) return `${digits.slice(0, point)}.${digits.slice(point)}`;
  return `0.${'0'.repeat(-point)}${digits}`;
}

function special(text: string): string | undefined {
  const match = SPECIAL.exec(text);
  if (!match) return undefined;
  if (match[2]?.toLowerCase() === 'nan') return 'NaN';
  return match[1] === '-' ? '-Infinity' : 'Infinity';
}

/** The number behind a canonical text; `undefined` for `NaN`, the infinities and exponents too large to expand. */
export function decimalOf(canonical: string): Decimal | undefined {
  const parts = DECIMAL.exec(canonical);
  if (!parts) return undefined;
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = parts;
  const power = Number(exponent) - fraction.length;
  if (Math.abs(power) > MAX_EXPONENT) return undefined;
  const units = BigInt(`${whole}${fraction}` || '0') * (sign === '-' ? -1n : 1n);
  return power >= 0 ? { units: units * 10n ** BigInt(power), scale: 0 } : { units, scale: -power };
}

/** The canonical text of an exact number. */
export function textOf({ units, scale }: Decimal): string {
  return canonicalDecimal(`${units}e${-scale}`) ?? '';
}

/** Digits after the point as they are written: 2 for `1.10`; `undefined` for `NaN` and the infinities. */
export function writtenScale(text: string): number | undefined {
  const parts = DECIMAL.exec(text);
  if (!parts || canonicalDecimal(text) === undefined) return undefined;
  const [, , , fraction = '', exponent = '0'] = parts;
  return Math.max(0, fraction.length - Number(exponent));
}

/** True for `NaN` and the infinities, which are no numbers to count with. */
export function isSpecial(canonical: string): boolean {
  return SPECIAL.test(canonical);
}

/** `value * 10^places`, exact: the point moves, nothing is multiplied. */
export function shift({ units, scale }: Decimal, places: number): Decimal {
  const moved = scale - places;
  return moved >= 0 ? { units, scale: moved } : { units: units * 10n ** BigInt(-moved), scale: 0 };
}

export type Rounding = 'floor' | 'half-up' | 'half-even';

/** Brings a number to `scale` digits. `half-up` takes a half away from zero, as money is rounded. */
export function roundTo(value: Decimal, scale: number, rounding: Rounding): Decimal {
  if (value.scale <= scale) return value;
  return { units: divide(value.units, 10n ** BigInt(value.scale - scale), rounding), scale };
}

/** The whole number that `units / divisor` is rounded to; the divisor is positive. */
export function divide(units: bigint, divisor: bigint, rounding: Rounding): bigint {
  const rest = ((units % divisor) + divisor) % divisor;
  const floor = (units - rest) / divisor;
  if (rounding === 'floor' || rest * 2n < divisor) return floor;
  if (rest * 2n > divisor) return floor + 1n;
  if (rounding === 'half-up') return units < 0n ? floor : floor + 1n;
  return floor % 2n === 0n ? floor : floor + 1n;
}

export function subtract(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale);
  return { units: unitsAt(a, scale) - unitsAt(b, scale), scale };
}

/** True when `|a - b| <= tolerance`. */
export function isWithin(a: Decimal, b: Decimal, tolerance: Decimal): boolean {
  const scale = Math.max(a.scale, b.scale, tolerance.scale);
  return magnitude(unitsAt(a, scale) - unitsAt(b, scale)) <= unitsAt(tolerance, scale);
}

/** True when `|a - b|` is at most that many percent of the larger of both. */
export function isWithinPercent(a: Decimal, b: Decimal, percent: Decimal): boolean {
  const scale = Math.max(a.scale, b.scale);
  const [x, y] = [unitsAt(a, scale), unitsAt(b, scale)];
  const difference = magnitude(x - y) * 100n * 10n ** BigInt(percent.scale);
  return [x, y].some((units) => difference <= magnitude(units) * percent.units);
}

function magnitude(units: bigint): bigint {
  return units < 0n ? -units : units;
}

function unitsAt(decimal: Decimal, scale: number): bigint {
  return decimal.units * 10n ** BigInt(scale - decimal.scale);
}
