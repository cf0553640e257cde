import { Duration } from 'luxon';

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

const READABLE = /^(\d+(?:\.\d+)?(?:ms|s|m|h|d|w))+$/;

/**
 * Milliseconds of a duration written as `15m`, `1h30m`, `250ms`, or in ISO 8601 (`PT15M`, `P1D`).
 * Months and years are refused, since their length is not fixed. Returns `undefined` when the text is no duration.
 */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim();
  if (READABLE.test(trimmed)) return inRange(parseReadable(trimmed));
  if (!trimmed.startsWith('P')) return undefined;
  const iso = Duration.fromISO(trimmed);
  if (!iso.isValid || iso.months !== 0 || iso.years !== 0) return undefined;
  return inRange(iso.toMillis());
}

/** Beyond this a sum of milliseconds would not be exact. */
function inRange(ms: number): number | undefined {
  return ms >= 0 && ms <= Number.MAX_SAFE_INTEGER ? Math.round(ms) : undefined;
}

function parseReadable(text: string): number {
  let ms = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d|w)/g)) {
    ms += Number(amount) * (UNIT_MS[unit ?? ''] ?? Number.NaN);
  }
  return Math.round(ms);
}

/** The shortest readable form of a duration: `formatDuration(90_000)` is `1m30s`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  // Rounded first: a remainder of 59.97 s must become the next minute, not 60 s.
  let rest = Math.round(ms / 100) * 100;
  let text = '';
  for (const [unit, size] of [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
  ] as const) {
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  const seconds = Math.round(rest / 100) / 10;
  return seconds > 0 || text === '' ? `${text}${seconds}s` : text;
}
