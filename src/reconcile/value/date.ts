import { DateTime } from 'luxon';

/** A calendar date `2026-11-30`. PostgreSQL's `infinity` and `-infinity` keep their own texts. */
export function canonicalDate(text: string): string | undefined {
  const trimmed = text.trim();
  if (trimmed === 'infinity' || trimmed === '-infinity') return trimmed;
  if (!/^\d{4}-\d{2}-\d{2}$/.test(trimmed)) return undefined;
  return DateTime.fromISO(trimmed, { zone: 'utc' }).isValid ? trimmed : undefined;
}
