import { DateTime } from 'luxon';
import { isInstant } from '../instant.ts';
import { canonicalInstant, localTimeOf } from './instant.ts';

export type DateReading = { readonly text: string } | { readonly undecided: string };

/** The date a text names without any zone's help. */
export function canonicalDate(text: string): string | undefined {
  const read = readDate(text);
  return 'text' in read ? read.text : undefined;
}

const DATE = /^(\d{4,})-(\d{2})-(\d{2})( BC)?$/;

/**
 * A calendar date `2026-11-30`; years above 9999 and `0044-03-15 BC` as PostgreSQL writes them. PostgreSQL's `infinity`
 * and `-infinity` keep their own texts. A text with a time of day is a date only in a `zone`.
 */
export function readDate(text: string, zone?: string): DateReading {
  const trimmed = text.trim();
  if (trimmed === 'infinity' || trimmed === '-infinity') return { text: trimmed };
  const parts = DATE.exec(trimmed);
  if (parts) return isCalendarDate(parts) ? { text: trimmed } : { undecided: 'no such date' };
  if (!/^\d{4}-\d{2}-\d{2}[T ]\d/.test(trimmed)) {
    return { undecided: 'cannot be read as date; expected 2026-11-30' };
  }
  if (zone === undefined) return { undecided: 'a time whose date depends on the zone; give its rule a zone' };
  return dateIn(trimmed, zone);
}

function isCalendarDate([, year = '', month = '', day = '', bc]: RegExpExecArray): boolean {
  // The calendar repeats every 400 years, and 1 BC is the year 0.
  const astronomical = bc === undefined ? BigInt(year) : 1n - BigInt(year);
  if (BigInt(year) === 0n) return false;
  const cycle = Number(((astronomical % 400n) + 400n) % 400n) + 2000;
  return DateTime.fromObject({ year: cycle, month: Number(month), day: Number(day) }, { zone: 'utc' })
    .isValid;
}

/** A wall time already shows its date; an instant shows it on the clocks of the zone. */
function dateIn(text: string, zone: string): DateReading {
  const wall = /^(\d{4}-\d{2}-\d{2})[T ][\d:.,]+$/.exec(text)?.[1];
  if (wall !== undefined) return readDate(wall);
  const read = canonicalInstant(text);
  if ('undecided' in read) return read;
  return { text: isInstant(read.text) ? localTimeOf(read.text, zone).slice(0, 10) : read.text };
}

/** Days since 1970; `undefined` for the infinities and for years beyond four digits. */
export function dayNumberOf(canonical: string): bigint | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(canonical)) return undefined;
  return BigInt(DateTime.fromISO(canonical, { zone: 'utc' }).toSeconds()) / 86_400n;
}
