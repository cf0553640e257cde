import { DateTime } from 'luxon';
import pg from 'pg';
import { addMillis, type Instant, millisOf } from '../instant.ts';
import type { Window } from '../record.ts';
import { type Column, OID } from './postgres-columns.ts';
import { quoteIdentifier } from './postgres-sql.ts';

export interface WindowCondition {
  readonly text: string;
  readonly values: readonly [string, string];
  /** The same with the values as quoted literals, for statements that take no parameters. */
  readonly literal: string;
}

/**
 * Selects the records of a window by the time column; undefined when the column holds no times. A column without time
 * zone is read as wall time of `zone`; then more than the window may be selected (see `wallTimes`).
 */
export function windowCondition(column: Column, window: Window, zone: string): WindowCondition | undefined {
  const quoted = quoteIdentifier(column.name);
  if (column.oid === OID.timestamptz) return condition(quoted, 'timestamptz', [window.from, window.to]);
  if (column.oid !== OID.timestamp && column.oid !== OID.date) return undefined;
  return condition(quoted, 'timestamp', wallTimes(window, zone));
}

function condition(quoted: string, type: string, values: readonly [string, string]): WindowCondition {
  const text = (from: string, to: string) => `${quoted} >= ${from}::${type} and ${quoted} < ${to}::${type}`;
  const [from, to] = values;
  return { text: text('$1', '$2'), values, literal: text(pg.escapeLiteral(from), pg.escapeLiteral(to)) };
}

const WEEK_MS = 7 * 86_400_000;

/**
 * The earliest and the end of all wall times that a clock of the zone shows within the window. When clocks go back an
 * hour inside it, the wall time of its start is not the earliest one.
 */
function wallTimes(window: Window, zone: string): [string, string] {
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
