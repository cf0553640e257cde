import { canonicalDecimal } from './decimal.ts';

/**
 * The shortest text that names the double, so that `0.1` read from a `real` and from a `double precision` agree.
 * Only binary floats come here; what is exact at home (`bigint`, `numeric`) never becomes a number (rule 5.6).
 */
export function canonicalFloat(text: string): string | undefined {
  const decimal = canonicalDecimal(text);
  return decimal === undefined ? undefined : String(Number(decimal));
}
