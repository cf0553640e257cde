import { DateTime } from 'luxon';

declare const brand: unique symbol;

/**
 * A moment in UTC with microseconds, always written `2026-11-30T17:57:31.123456Z`. The fixed width makes the text
 * order the time order, and nothing is lost in a JavaScript number or Date (rule 5.6).
 */
export type Instant = string & { readonly [brand]: 'Instant' };

const CANONICAL = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/;

export function isInstant(text: string): text is Instant {
  return CANONICAL.test(text);
}

/** Reads `2026-11-30 17:57:31.12+00` (PostgreSQL) or ISO 8601 with an offset. Finer than microseconds is cut. */
export function parseInstant(text: string): Instant | undefined {
  const match =
    /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?)(?:[.,](\d+))?\s?(Z|[+-]\d{2}(?::?\d{2})?)$/i.exec(
      text.trim(),
    );
  if (!match) return undefined;
  const [, date, time, fraction = '', offset = 'Z'] = match;
  const zone = /^[+-]\d{2}$/.test(offset) ? `${offset}:00` : offset.toUpperCase();
  const whole = DateTime.fromISO(`${date}T${time}${zone}`, { zone: 'utc' });
  if (!whole.isValid) return undefined;
  return withMicros(whole, fraction.padEnd(6, '0').slice(0, 6));
}

/** Epoch milliseconds, which may have a fraction. */
export function instantFromMillis(ms: number): Instant {
  const seconds = Math.floor(ms / 1000);
  const micros = Math.floor((ms - seconds * 1000) * 1000);
  return withMicros(DateTime.fromSeconds(seconds, { zone: 'utc' }), String(micros).padStart(6, '0'));
}

export function millisOf(instant: Instant): number {
  return (
    DateTime.fromISO(`${instant.slice(0, 19)}Z`, { zone: 'utc' }).toMillis() +
    Number(instant.slice(20, 26)) / 1000
  );
}

/** `instant` moved by whole milliseconds; its microseconds are kept. */
export function addMillis(instant: Instant, ms: number): Instant {
  const micros = Number(instant.slice(20, 26));
  const total =
    DateTime.fromISO(`${instant.slice(0, 19)}Z`, { zone: 'utc' }).toMillis() * 1000 +
    micros +
    Math.round(ms) * 1000;
  const seconds = Math.floor(total / 1_000_000);
  return withMicros(
    DateTime.fromSeconds(seconds, { zone: 'utc' }),
    String(total - seconds * 1_000_000).padStart(6, '0'),
  );
}

export function earliest(first: Instant, ...others: readonly Instant[]): Instant {
  let found = first;
  for (const other of others) if (other < found) found = other;
  return found;
}

export function latest(first: Instant, ...others: readonly Instant[]): Instant {
  let found = first;
  for (const other of others) if (other > found) found = other;
  return found;
}

function withMicros(whole: DateTime, micros: string): Instant {
  return `${whole.toFormat("yyyy-MM-dd'T'HH:mm:ss")}.${micros}Z` as Instant;
}
