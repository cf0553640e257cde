import type { Value } from '../record.ts';

export type Comparison =
  | {
      readonly equal: boolean;
      /** Short stable name of the rule that decided, listed in `docs/reference/rules.md`. */
      readonly rule: string;
      /** True when the values are not the same and only the rule makes them equal. */
      readonly forgiven: boolean;
    }
  /** One of the cells cannot be read fairly, so nothing can be said. */
  | { readonly undecided: string };

/** A value that is there and could be read. */
export type Typed = Extract<Value, { readonly text: string; readonly reason?: never }>;

/** What a field's comparison needs to know of the rest of its record. */
export interface Beside {
  /** The currency of the amount; left out: none is known. */
  readonly currency?: string | { readonly undecided: string } | undefined;
}

export function same(rule: string): Comparison {
  return { equal: true, rule, forgiven: false };
}

export function forgiven(rule: string): Comparison {
  return { equal: true, rule, forgiven: true };
}

export function different(rule: string): Comparison {
  return { equal: false, rule, forgiven: false };
}
