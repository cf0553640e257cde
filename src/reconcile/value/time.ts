export type TimeReading = { readonly text: string } | { readonly undecided: string };

const TIME = /^(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?$/;

/**
 * A time of day `17:57:31.120000`. `24:00:00`, the end of a day, is not `00:00:00`, its beginning. MySQL's longer and
 * negative times are spans, no times of day.
 */
export function canonicalTime(text: string): TimeReading {
  const trimmed = text.trim();
  if (/\d\s?(?:Z|[+-]\d{2}(?::?\d{2})?)$/i.test(trimmed)) {
    return { undecided: 'a time of day with an offset; it has no date to place it' };
  }
  const parts = TIME.exec(trimmed);
  if (!parts) return { undecided: 'no time of day; expected 17:57:31' };
  const [, hour = '', minute = '', second = '00', fraction = ''] = parts;
  const micros = fraction.padEnd(6, '0').slice(0, 6);
  const end = hour === '24' && minute === '00' && second === '00' && Number(micros) === 0;
  if (!end && (hour > '23' || minute > '59' || second > '59')) return { undecided: 'no such time of day' };
  return { text: `${hour}:${minute}:${second}.${micros}` };
}

/** Microseconds since midnight. */
export function microsOfDay(canonical: string): bigint {
  const [hours = '0', minutes = '0', seconds = '0'] = canonical.split(':');
  return BigInt(hours) * 3_600_000_000n + BigInt(minutes) * 60_000_000n + BigInt(seconds.replace('.', ''));
}
