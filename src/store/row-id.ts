import { EXIT, TrueupError } from '../error.ts';

/** Checks an id that a person or another program gave, before it reaches a statement. Throws `TRU_NO_ID` (exit 2). */
export function rowId(text: string): string {
  if (/^\d{1,18}$/.test(text)) return text;
  throw new TrueupError('TRU_NO_ID', `"${text}" is no id`, {
    exit: EXIT.usage,
    hint: 'ids are whole numbers, as `trueup runs` and `trueup diffs` print them',
  });
}
