import { misfits } from '../../config/rule-options.ts';
import type { Rule } from '../../config/schema.ts';
import type { ValueType } from '../record.ts';
import type { SideDescription } from '../side.ts';

type Columns = SideDescription['columns'];
type Column = Columns[number];

/** Column types whose values can be read as a type. Every value can be read as text. */
const READABLE: Readonly<Record<Exclude<ValueType, 'text'>, readonly ValueType[]>> = {
  integer: ['integer', 'decimal', 'float', 'text'],
  decimal: ['decimal', 'integer', 'float', 'text'],
  float: ['float', 'integer', 'decimal', 'text'],
  boolean: ['boolean', 'integer', 'text'],
  instant: ['instant', 'date', 'text'],
  date: ['date', 'instant', 'text'],
  time: ['time', 'text'],
  uuid: ['uuid', 'text'],
  json: ['json', 'text'],
  bytes: ['bytes', 'text'],
  array: ['array', 'json', 'text'],
  set: ['set', 'array', 'json', 'text'],
};

const NUMBERS: readonly ValueType[] = ['integer', 'decimal', 'float'];

/**
 * Says of each compared field, and each part of the key, why its two columns cannot be compared fairly under its rule:
 * the values would differ, or be undecided, whatever they mean. For `trueup check`; nothing is concluded from it.
 */
export function unfairPairs(
  source: Columns,
  downstream: Columns,
  rules: Readonly<Record<string, Rule>>,
  key: readonly string[] = [],
): readonly string[] {
  const columnOf = (columns: Columns, name: string) => columns.find((column) => column.name === name);
  return [...new Set([...key, ...Object.keys(rules)])].flatMap((name) => {
    const [a, b] = [columnOf(source, name), columnOf(downstream, name)];
    const rule = rules[name];
    if (a === undefined || b === undefined || rule?.ignore) return [];
    const isKey = key.includes(name);
    const found = rule === undefined ? undefined : (unreadable(a, b, rule) ?? unfitting(a, b, rule));
    const reason = found ?? ofTypes(a, b, rule, isKey) ?? ofTimes(a, b, rule, isKey) ?? ofFloats(a, b, rule);
    return reason === undefined ? [] : [`${isKey ? `key part ${name}` : name}: ${reason}`];
  });
}

/** The type a side's values have: the rule's, else the column's; undefined where only each value tells. */
function typeOf(column: Column, rule: Rule | undefined): ValueType | undefined {
  return rule?.type ?? (isJson(column) ? undefined : column.type);
}

/** A field of a JSON answer has no type before it is read. */
function isJson({ native }: Column): boolean {
  return native.startsWith('JSON at ');
}

function unreadable(a: Column, b: Column, { type }: Rule): string | undefined {
  if (type === undefined || type === 'text') return undefined;
  for (const [side, column] of [['source', a] as const, ['downstream', b] as const]) {
    if (isJson(column) || READABLE[type].includes(column.type)) continue;
    return `the ${side} column is ${column.native}, whose values cannot be read as ${type}`;
  }
  return undefined;
}

/** Where the rule names no type, only the catalogue tells whether its options fit. */
function unfitting(a: Column, b: Column, rule: Rule): string | undefined {
  if (rule.type !== undefined) return undefined;
  for (const column of [a, b]) {
    const type = typeOf(column, rule);
    const [misfit] = type === undefined ? [] : misfits(rule, type);
    if (misfit !== undefined) {
      return `${misfit.option} says nothing about ${column.native}; it is for ${misfit.types.join(', ')}`;
    }
  }
  return undefined;
}

function ofTypes(a: Column, b: Column, rule: Rule | undefined, isKey: boolean): string | undefined {
  const [x, y] = [typeOf(a, rule), typeOf(b, rule)];
  if (x === undefined || y === undefined || x === y || rule?.map !== undefined) return undefined;
  if (NUMBERS.includes(x) && NUMBERS.includes(y)) return undefined;
  const types = `the source is ${a.native} and the downstream ${b.native}`;
  return isKey
    ? `${types}; keys pair by their canonical texts, so give its rule a type or use a view`
    : `${types}; values of different types are never equal, so give its rule a type`;
}

/** A wall time beside an instant is an hour or more off, unless somebody says whose wall it is. */
function ofTimes(a: Column, b: Column, rule: Rule | undefined, isKey: boolean): string | undefined {
  if (typeOf(a, rule) !== 'instant' || typeOf(b, rule) !== 'instant') return undefined;
  const walls = [a, b].filter(isWallTime);
  const [wall] = walls;
  if (wall !== undefined && walls.length === 1 && rule?.zone === undefined && !isJson(a) && !isJson(b)) {
    return `${wall.native} has no zone and the other side has one; without a zone in its rule UTC is taken`;
  }
  const [x, y] = [digitsOf(a), digitsOf(b)];
  const relaxed = !isKey && (rule?.precision !== undefined || rule?.within !== undefined);
  if (x === undefined || y === undefined || x === y || relaxed) return undefined;
  return `${a.native} and ${b.native} keep different fractions of a second${isKey ? '' : '; give its rule a precision'}`;
}

function isWallTime({ native }: Column): boolean {
  return /^(timestamp.* without time zone|datetime)/i.test(native);
}

/** Digits of a fraction of a second that a column keeps; undefined when its name does not tell. */
function digitsOf({ native }: Column): number | undefined {
  const found = /^(timestamp|datetime)(?:\((\d)\))?/i.exec(native);
  if (!found) return undefined;
  const [, , digits] = found;
  // PostgreSQL keeps six when nothing is said, MySQL none.
  return digits === undefined ? (/time zone$/.test(native) ? 6 : 0) : Number(digits);
}

function ofFloats(a: Column, b: Column, rule: Rule | undefined): string | undefined {
  const types = [typeOf(a, rule), typeOf(b, rule)];
  const mixed = types.includes('float') && types.includes('decimal');
  if (!mixed || rule?.tolerance !== undefined) return undefined;
  return `${a.native} and ${b.native}: a binary float holds about 15 digits, so give its rule a tolerance`;
}
