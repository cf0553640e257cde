import type { Window } from '../record.ts';
import { type Column, OID } from './postgres-columns.ts';
import { quoteIdentifier } from './postgres-sql.ts';
import { wallTimes } from './wall-times.ts';

export interface WindowCondition {
  readonly text: string;
  readonly values: readonly [string, string];
}

/**
 * Selects the records of a window by the time column; undefined when the column holds no times. A column without time
 * zone is read as wall time of `zone`; then more than the window may be selected (see `wallTimes`).
 */
export function windowCondition(column: Column, window: Window, zone: string): WindowCondition | undefined {
  const quoted = quoteIdentifier(column.name);
  if (column.oid === OID.timestamptz) {
    return {
      text: `${quoted} >= $1::timestamptz and ${quoted} < $2::timestamptz`,
      values: [window.from, window.to],
    };
  }
  if (column.oid !== OID.timestamp && column.oid !== OID.date) return undefined;
  return {
    text: `${quoted} >= $1::timestamp and ${quoted} < $2::timestamp`,
    values: wallTimes(window, zone),
  };
}
