import type { Rule } from '../../config/schema.ts';
import { SideError } from '../side.ts';
import type { Places } from './mapping.ts';
import { type Relation, relationOf } from './relation.ts';

/** Throws `SideError` when the configuration names no table, or both a table and a query. */
export function configuredRelation(
  config: {
    readonly table?: string | undefined;
    readonly query?: string | undefined;
    readonly where?: string | undefined;
  },
  where: string,
  quoteTable: (name: string) => string,
): Relation {
  if ((config.table === undefined) === (config.query === undefined)) {
    throw misconfigured(where, 'give either table or query');
  }
  try {
    return relationOf(config, quoteTable);
  } catch (error) {
    throw misconfigured(where, error instanceof Error ? error.message : String(error), error);
  }
}

export function misconfigured(where: string, message: string, cause?: unknown): SideError {
  return new SideError('TRU_SIDE_MISCONFIGURED', where, message, { transient: false, cause });
}

/** The zone of the time column's wall times: from the rule of a field that reads the same column, else UTC. */
export function zoneOfTime(timeName: string, places: Places, rules: Readonly<Record<string, Rule>>): string {
  const field = places.fields.find(([name, place]) => place === timeName && rules[name]?.zone !== undefined);
  return rules[field?.[0] ?? timeName]?.zone ?? 'UTC';
}

export function* batches<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}
