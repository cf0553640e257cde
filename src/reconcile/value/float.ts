import { canonicalDecimal } from './decimal.ts';

/**
 * The shortest text that names the double, so that `0.1` read from a `real` and from a `double precision` agree; minus
 * zero keeps its sign. `undefined` for numbers that no double can hold (`1e400`, `1e-400`): they are not infinity or
 * zero. Only binary floats come here; what is exact at home (`bigint`, `numeric`) never becomes a number (rule 5.6).
 */
export function canonicalFloat(text: string): string | undefined {
  const decimal = canonicalDecimal(text);
  if (decimal === undefined) return undefined;
  if (decimal === '0') return text.trim().startsWith('-') ? '-0' : '0';
  const double = Number(decimal);
  const lost = double === 0 || (!Number.isFinite(double) && /\d/.test(decimal));
  return lost ? undefined : String(double);
}

/** True when two texts of doubles name one float of 32 bits. */
export function equalAtSingle(a: string, b: string): boolean {
  return Object.is(Math.fround(Number(a)), Math.fround(Number(b)));
}
