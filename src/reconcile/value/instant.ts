import { DateTime, IANAZone } from 'luxon';
import { type Instant, instantFromMillis, isInstant, parseInstant } from '../instant.ts';
import { divide, type Rounding } from './decimal.ts';

export type InstantReading =
  | { readonly text: string }
  /** Why no single moment is meant. */
  | { readonly undecided: string };

/** Every day but 29 February, which needs to know its year. */
const DAY = '(?:0[1-9]|1[0-2])-(?:0[1-9]|1\\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31';
/** A valid moment in UTC, or in a zone not said: the form of nearly all values, read without a calendar. */
const PLAIN = new RegExp(
  `^(\\d{4}-(?:${DAY}))[T ]((?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d)(?:\\.(\\d{1,6}))?(Z|\\+00)?$`,
);
const LOCAL = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:[.,](\d+))?)?$/;

/**
 * The moment a text names, to the microsecond. A text without an offset is a local time and needs `zone` (IANA).
 * A local time that the zone had twice or never (daylight saving) is undecided: guessing it would invent or hide an
 * hour. PostgreSQL's `infinity` and `-infinity` keep their own texts.
 */
export function canonicalInstant(text: string, zone?: string): InstantReading {
  const trimmed = text.trim();
  const plain = PLAIN.exec(trimmed);
  if (plain && (plain[4] !== undefined || zone === 'UTC')) {
    return { text: `${plain[1]}T${plain[2]}.${(plain[3] ?? '').padEnd(6, '0')}Z` };
  }
  const instant = parseInstant(trimmed);
  if (instant !== undefined) return { text: instant };
  if (trimmed === 'infinity' || trimmed === '-infinity') return { text: trimmed };
  const local = LOCAL.exec(trimmed);
  if (!local) return { undecided: 'no instant; expected ISO 8601, such as 2026-11-30T17:57:31Z' };
  if (zone === undefined) return { undecided: 'a local time without offset; give its rule a zone' };
  const [, date = '', time = '00:00:00', fraction = ''] = local;
  return inZone(date, time.length === 5 ? `${time}:00` : time, fraction, zone);
}

function inZone(date: string, time: string, fraction: string, zone: string): InstantReading {
  if (!IANAZone.isValidZone(zone)) return { undecided: `${zone} is no time zone` };
  const local = `${date}T${time}`;
  const read = DateTime.fromISO(local, { zone });
  if (!read.isValid) return { undecided: 'no such date or time' };
  if (read.toFormat("yyyy-MM-dd'T'HH:mm:ss") !== local) {
    return { undecided: `a local time that ${zone} skipped (daylight saving)` };
  }
  if (read.getPossibleOffsets().length > 1) {
    return { undecided: `a local time that ${zone} had twice (daylight saving)` };
  }
  const whole = instantFromMillis(read.toMillis());
  return { text: `${whole.slice(0, 19)}.${fraction.padEnd(6, '0').slice(0, 6)}Z` };
}

/** Microseconds since 1970, exact; `undefined` for the infinities. */
export function microsOf(canonical: string): bigint | undefined {
  if (!isInstant(canonical)) return undefined;
  const seconds = DateTime.fromISO(`${canonical.slice(0, 19)}Z`, { zone: 'utc' }).toSeconds();
  return BigInt(seconds) * 1_000_000n + BigInt(canonical.slice(20, 26));
}

const UNIT = { second: 1_000_000n, millisecond: 1000n, microsecond: 1n } as const;
export type Precision = keyof typeof UNIT;

/** Brings microseconds to a precision. Cutting is the usual way: rounding moves a record over the edge of its second. */
export function atPrecision(micros: bigint, precision: Precision, rounding: Rounding): bigint {
  return divide(micros, UNIT[precision], rounding) * UNIT[precision];
}

/** The wall time of a zone at an instant, as PostgreSQL reads it into a `timestamp`. */
export function localTimeOf(instant: Instant, zone: string): string {
  const local = DateTime.fromISO(`${instant.slice(0, 19)}Z`, { zone });
  return `${local.toFormat('yyyy-MM-dd HH:mm:ss')}.${instant.slice(20, 26)}`;
}
