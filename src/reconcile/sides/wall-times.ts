import { DateTime } from 'luxon';
import { addMillis, type Instant, millisOf } from '../instant.ts';
import type { SideRecord, Window } from '../record.ts';

const WEEK_MS = 7 * 86_400_000;

/**
 * The earliest and the end of all wall times that a clock of the zone shows within the window. When clocks go back an
 * hour inside it, the wall time of its start is not the earliest one.
 */
export function wallTimes(window: Window, zone: string): [string, string] {
  const offsets = [offsetAt(window.from, zone), offsetAt(window.to, zone)];
  for (let at = addMillis(window.from, WEEK_MS); at < window.to; at = addMillis(at, WEEK_MS)) {
    offsets.push(offsetAt(at, zone));
  }
  return [shifted(window.from, Math.min(...offsets)), shifted(window.to, Math.max(...offsets))];
}

function offsetAt(instant: Instant, zone: string): number {
  return DateTime.fromMillis(Math.floor(millisOf(instant)), { zone }).offset;
}

function shifted(instant: Instant, minutes: number): string {
  return addMillis(instant, minutes * 60_000)
    .replace('T', ' ')
    .replace('Z', '');
}

/** Drops what was selected beyond the window. Records with an ambiguous wall time may belong to it, so they stay. */
export function isWithin(record: SideRecord, window: Window): boolean {
  return record.time === null || (record.time >= window.from && record.time < window.to);
}
