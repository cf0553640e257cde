import { EXIT, TrueupError } from '../error.ts';

const MOST = 2_147_483_647;

/** A count that a person wrote: digits only, above 0, and one that the store can hold. */
export function wholeNumber(text: string, option: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number > 0 && number <= MOST) return number;
  throw new TrueupError('TRU_USAGE', `${option} ${text} is no whole number above 0`, { exit: EXIT.usage });
}
