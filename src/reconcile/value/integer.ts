import { canonicalDecimal } from './decimal.ts';

/** The one text of a whole number of any size; `5.00` and `5e3` are whole too. `undefined` for all else. */
export function canonicalInteger(text: string): string | undefined {
  const decimal = canonicalDecimal(text);
  return decimal !== undefined && /^-?\d+$/.test(decimal) ? decimal : undefined;
}
