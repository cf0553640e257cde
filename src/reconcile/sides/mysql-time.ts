import type { Window } from '../record.ts';
import type { Column } from './mysql-columns.ts';
import { quoteIdentifier } from './mysql-sql.ts';
import { wallTimes } from './wall-times.ts';

/**
 * Selects the records of a window by the time column; undefined when the column holds no times. A column without time
 * zone is read as wall time of `zone`; then more than the window may be selected (see `wallTimes`). Sessions are in
 * UTC, so a `timestamp` is compared as UTC.
 */
export function windowCondition(column: Column, window: Window, zone: string): string | undefined {
  if (!isTime(column)) return undefined;
  const [from, to] = column.kind === 'timestamp' ? wallTimes(window, 'UTC') : wallTimes(window, zone);
  const quoted = quoteIdentifier(column.name);
  return `${quoted} >= timestamp'${from}' and ${quoted} < timestamp'${to}'`;
}

function isTime({ kind }: Column): boolean {
  return kind === 'timestamp' || kind === 'datetime' || kind === 'date';
}
