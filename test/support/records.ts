import { type Instant, parseInstant } from '../../src/reconcile/instant.ts';
import type { Key, SideRecord, Value, Window } from '../../src/reconcile/record.ts';

/** `2026-11-30` at this time of day, to be written short in tests. */
export function at(time: string): Instant {
  const instant = parseInstant(`2026-11-30T${time}Z`);
  if (instant === undefined) throw new Error(`"${time}" is no time of day`);
  return instant;
}

export const NOON: Window = { from: at('12:00'), to: at('13:00') };

function text(value: string): Value {
  return { type: 'text', text: value };
}

/** A record of one text key with text fields, in the hour after noon unless said otherwise. */
export function record(
  key: string | Key,
  fields: Readonly<Record<string, Value | string>> = {},
  time: Instant | null = at('12:30'),
): SideRecord {
  return {
    key: typeof key === 'string' ? [key] : key,
    time,
    fields: Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? text(value) : value]),
    ),
  };
}
