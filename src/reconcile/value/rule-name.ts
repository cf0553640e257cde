/**
 * The parts that names of rules are made of, joined by commas. Reports, stored diffs and counts cite them, so they
 * stay as they are; `docs/reference/rules.md` says what each means. `{}` stands for what the config or the record says.
 */
const PARTS = {
  ignored: 'ignored',
  null: 'null',
  type: 'type',
  emptyIsNull: 'empty is null',
  infiniteIsNull: 'infinite is null',
  unrepresentable: 'unrepresentable',
  valueMap: 'value map',
  text: 'text',
  integer: 'integer',
  decimal: 'decimal',
  float: 'float',
  boolean: 'boolean',
  instant: 'instant',
  date: 'date',
  time: 'time',
  uuid: 'uuid',
  json: 'json',
  bytes: 'bytes',
  array: 'array',
  set: 'set',
  notANumber: 'NaN is itself',
  minusZero: 'minus zero is zero',
  single: 'at single precision',
  scale: 'with scale',
  minorUnits: 'minor units of {}',
  tolerance: 'tolerance {}',
  precision: 'to the {}',
  rounding: 'rounded {}',
  within: 'within {}',
  padded: 'padded',
  trim: 'trimmed',
  ignoreCase: 'ignoring case',
  unicode: 'in {}',
  jsonFloats: 'numbers as floats',
  repeats: 'ignoring repeats',
} as const;

export type RulePart = keyof typeof PARTS;

/** Every part as `docs/reference/rules.md` lists it. */
export const RULE_PARTS: readonly string[] = Object.values(PARTS);

/** One part of a name, with what stands for `{}`. */
export function rulePart(part: RulePart, detail = ''): string {
  return PARTS[part].replace('{}', () => detail);
}

export function ruleName(...parts: readonly (string | false | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== false).join(', ');
}
