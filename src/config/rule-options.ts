import type { Rule, TypeName } from './schema.ts';

const NUMBERS: readonly TypeName[] = ['integer', 'decimal', 'float'];
const EXACT: readonly TypeName[] = ['integer', 'decimal'];
const LISTS: readonly TypeName[] = ['array', 'set'];

/** The types that each option of a rule says something about; an option that is not here fits all. */
const TYPES = {
  tolerance: NUMBERS,
  currency: EXACT,
  minorUnits: EXACT,
  scale: ['decimal'],
  format: NUMBERS,
  infiniteIsNull: ['decimal', 'float', 'instant', 'date'],
  rounding: [...EXACT, 'instant', 'time'],
  precision: ['instant', 'time'],
  within: ['instant', 'date', 'time'],
  zone: ['instant', 'date', ...LISTS],
  padded: ['text', 'bytes'],
  trim: ['text'],
  ignoreCase: ['text'],
  unicode: ['text'],
  emptyIsNull: ['text'],
  numbers: ['json'],
  encoding: ['bytes'],
  of: LISTS,
  repeats: ['set'],
} as const satisfies Partial<Record<keyof Rule, readonly TypeName[]>>;

export type RuleOption = keyof typeof TYPES;

/** All that can be said of a pair of fields besides its type, `ignore` and `map`. */
export const RULE_OPTIONS = Object.keys(TYPES) as readonly RuleOption[];

export function isSet(rule: Rule, option: keyof Rule): boolean {
  return rule[option] !== undefined && rule[option] !== false;
}

/** Options of the rule that say nothing about values of a type, with the types that they are for. */
export function misfits(
  rule: Rule,
  type: TypeName,
): readonly { readonly option: RuleOption; readonly types: readonly TypeName[] }[] {
  return RULE_OPTIONS.map((option) => ({ option, types: TYPES[option] as readonly TypeName[] })).filter(
    ({ option, types }) => isSet(rule, option) && !types.includes(type),
  );
}
