import type { Rule } from '../../config/schema.ts';
import type { Value } from '../record.ts';
import { orderFree } from './array.ts';
import { withoutZeros } from './bytes.ts';
import { areNumbers, compareNumbers } from './compare-numbers.ts';
import { compareTimes, isTime } from './compare-times.ts';
import { type Beside, type Comparison, different, forgiven, same, type Typed } from './comparison.ts';
import { readJsonText } from './json.ts';
import { type RulePart, ruleName, rulePart } from './rule-name.ts';
import { foldText, textRuleName } from './text.ts';

export type { Beside, Comparison } from './comparison.ts';

/**
 * Compares two canonical values under a field's rule. Null equals only null: not `''`, not the text `NULL`, unless a
 * rule says so by name. Values of different types differ under the rule `type`, except numbers, and except where a
 * value map says what means what.
 */
export function compareValues(source: Value, downstream: Value, rule: Rule, beside: Beside = {}): Comparison {
  if (rule.ignore) return same(rulePart('ignored'));
  if (source.type === 'undecided') return { undecided: `source ${source.reason}` };
  if (downstream.type === 'undecided') return { undecided: `downstream ${downstream.reason}` };
  if (source.type === 'null') return compareNull(downstream, rule);
  if (downstream.type === 'null') return compareNull(source, rule);
  const mapped = compareByMap(source, downstream, rule);
  if (mapped !== undefined) return mapped;
  if (areNumbers(source, downstream)) return compareNumbers(source, downstream, rule, beside);
  const { type } = source;
  if (type !== downstream.type) return different(rulePart('type'));
  if (isTime(type)) return compareTimes(source, downstream, type, rule);
  return compareFolded(source, downstream, rule);
}

/**
 * True when two values are the same and no rule could say otherwise: most are, and then nothing has to be named. A map or
 * minor units give one text two meanings.
 */
export function areSame(source: Value, downstream: Value, rule: Rule): boolean {
  if (source.type === 'null' || downstream.type === 'null') return source.type === downstream.type;
  if (source.type === 'undecided' || downstream.type === 'undecided') return false;
  const means = rule.map === undefined && rule.minorUnits === undefined;
  const { type, text, scale } = source;
  return means && type === downstream.type && text === downstream.text && scale === downstream.scale;
}

const INFINITE = /^(?:NaN|-?[Ii]nfinity)$/;
const MAY_BE_INFINITE: ReadonlySet<string> = new Set(['decimal', 'float', 'instant', 'date']);

/** One side is null. */
function compareNull(other: Exclude<Value, { type: 'undecided' }>, rule: Rule): Comparison {
  if (other.type === 'null') return same(rulePart('null'));
  if (rule.emptyIsNull && other.type === 'text' && foldText(other.text, rule) === '') {
    return forgiven(rulePart('emptyIsNull'));
  }
  if (!MAY_BE_INFINITE.has(other.type) || !INFINITE.test(other.text)) return different(rulePart('null'));
  return rule.infiniteIsNull ? forgiven(rulePart('infiniteIsNull')) : different(rulePart('unrepresentable'));
}

/** A mapped source value means its counterpart and nothing else, not even itself. */
function compareByMap(source: Typed, downstream: Typed, rule: Rule): Comparison | undefined {
  const { map } = rule;
  if (map === undefined) return undefined;
  const spelling = [source.text, foldText(source.text, rule)].find((text) => Object.hasOwn(map, text));
  const meant = spelling === undefined ? undefined : map[spelling];
  if (meant === undefined) return undefined;
  const name = rulePart('valueMap');
  if (foldText(downstream.text, rule) !== foldText(meant, rule)) return different(name);
  return downstream.text === source.text ? same(name) : forgiven(name);
}

/** Values of one type that a rule may bring to another form before they are compared. */
function compareFolded(source: Typed, downstream: Typed, rule: Rule): Comparison {
  const { name, fold } = folding(source.type as RulePart, rule);
  if (source.text === downstream.text) return same(name);
  return fold(source.text) === fold(downstream.text) ? forgiven(name) : different(name);
}

function folding(type: RulePart, rule: Rule): { name: string; fold: (text: string) => string } {
  const name = rulePart(type);
  if (type === 'text') return { name: textRuleName(rule), fold: (text) => foldText(text, rule) };
  if (type === 'bytes' && rule.padded) {
    return { name: ruleName(name, rulePart('padded')), fold: withoutZeros };
  }
  if (type === 'json' && rule.numbers === 'float') {
    return { name: ruleName(name, rulePart('jsonFloats')), fold: withFloats };
  }
  if (type === 'set') {
    const { repeats = 'count' } = rule;
    return {
      name: ruleName(name, repeats === 'ignore' && rulePart('repeats')),
      fold: (text) => orderFree(text, repeats),
    };
  }
  return { name, fold: (text) => text };
}

function withFloats(json: string): string {
  const read = readJsonText(json, 'float');
  return 'text' in read ? read.text : json;
}
