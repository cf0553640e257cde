import type { Rule } from '../../config/schema.ts';

/** What a side needs to know of its reconciliation. */
export interface SideContext {
  /** `source` or `downstream`: which of the two sides an error is about. */
  readonly name: string;
  readonly keyNames: readonly string[];
  readonly rules: Readonly<Record<string, Rule>>;
}

type Mapping = readonly string[] | Readonly<Record<string, string>>;

/** A mapping as pairs of name and place (column or JSON pointer); names in a list stand for themselves. */
function pairsOf(mapping: Mapping): readonly (readonly [string, string])[] {
  return Array.isArray(mapping)
    ? mapping.map((name: string) => [name, name] as const)
    : Object.entries(mapping);
}

export interface Places {
  /** Where each key part stands, in the order of the reconciliation's key. */
  readonly keys: readonly (readonly [string, string])[];
  /** Where each field stands. Every compared field is among them. */
  readonly fields: readonly (readonly [string, string])[];
}

/**
 * Puts key names and field names to their places. A compared name that no mapping holds stands where the key part of
 * that name stands, else where `otherwise` says. Throws what `otherwise` throws.
 */
export function placesOf(
  mapping: { readonly key: Mapping; readonly fields: Mapping },
  context: SideContext,
  otherwise: (name: string) => string,
): Places {
  const keyed = new Map(pairsOf(mapping.key));
  const fields = new Map(pairsOf(mapping.fields));
  const keys = context.keyNames.map((name) => [name, keyed.get(name) ?? otherwise(name)] as const);
  const keyPlaces = new Map(keys);
  for (const name of Object.keys(context.rules)) {
    if (!fields.has(name)) fields.set(name, keyPlaces.get(name) ?? otherwise(name));
  }
  return { keys, fields: [...fields] };
}
