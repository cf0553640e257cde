import { minorDigits } from '../../config/currency.ts';
import type { Rule } from '../../config/schema.ts';
import { type Beside, type Comparison, different, forgiven, same, type Typed } from './comparison.ts';
import {
  canonicalDecimal,
  type Decimal,
  decimalOf,
  isSpecial,
  isWithin,
  isWithinPercent,
  roundTo,
  shift,
  textOf,
} from './decimal.ts';
import { equalAtSingle } from './float.ts';
import { type RulePart, ruleName, rulePart } from './rule-name.ts';

/** Numbers compare by what they are worth, whichever of these types their side gave them. */
const NUMERIC: ReadonlySet<string> = new Set(['integer', 'decimal', 'float']);

/** Only a binary float has the second one. */
const ZEROS: ReadonlySet<string> = new Set(['0', '-0']);

export function areNumbers(source: Typed, downstream: Typed): boolean {
  return NUMERIC.has(source.type) && NUMERIC.has(downstream.type);
}

/**
 * Compares two numbers exactly. Only what the rule says is forgiven: a tolerance, or the rounding of an amount to whole
 * minor units; and two named facts of binary floats: minus zero is zero, and a float of 32 bits knows its number less
 * exactly than one of 64.
 */
export function compareNumbers(source: Typed, downstream: Typed, rule: Rule, beside: Beside): Comparison {
  const type = source.type === downstream.type ? (source.type as RulePart) : 'decimal';
  if (isSpecial(source.text) || isSpecial(downstream.text)) return compareSpecials(source, downstream, type);
  if (rule.scale === 'compare' && source.scale !== downstream.scale) {
    return different(ruleName(rulePart(type), rulePart('scale')));
  }
  if (ZEROS.has(source.text) && ZEROS.has(downstream.text) && source.text !== downstream.text) {
    return forgiven(ruleName(rulePart(type), rulePart('minusZero')));
  }
  if (agreeAtSingle(source, downstream)) return forgiven(ruleName(rulePart('float'), rulePart('single')));
  if (rule.minorUnits !== undefined) return compareAmounts(source, downstream, rule, rule.minorUnits, beside);
  const [a, b] = [canonicalDecimal(source.text), canonicalDecimal(downstream.text)];
  const name = ruleName(rulePart(type), rule.scale === 'compare' && rulePart('scale'));
  if (a === b) return same(name);
  return withTolerance(decimalOf(a ?? ''), decimalOf(b ?? ''), name, rule, beside);
}

/** `NaN` and the infinities have no distance to anything; many systems cannot hold them at all. */
function compareSpecials(source: Typed, downstream: Typed, type: RulePart): Comparison {
  if (source.text === downstream.text) {
    return same(source.text === 'NaN' ? rulePart('notANumber') : rulePart(type));
  }
  return different(rulePart('unrepresentable'));
}

/** True for two floats that differ only beyond what the narrower of both can hold. */
function agreeAtSingle(source: Typed, downstream: Typed): boolean {
  if (source.type !== 'float' || downstream.type !== 'float' || source.text === downstream.text) return false;
  const narrow = source.single === true || downstream.single === true;
  return narrow && equalAtSingle(source.text, downstream.text);
}

/** One side counts cents, the other writes whole units with a point. The point is moved, nothing is multiplied. */
function compareAmounts(
  source: Typed,
  downstream: Typed,
  rule: Rule,
  minor: 'source' | 'downstream',
  beside: Beside,
): Comparison {
  const currency = currencyOf(beside);
  if (typeof currency !== 'string') return currency;
  const digits = minorDigits(currency);
  if (digits === undefined) return { undecided: `${currency} has no minor unit in ISO 4217` };
  const value = (typed: Typed, side: typeof minor): Decimal | undefined => {
    const decimal = decimalOf(canonicalDecimal(typed.text) ?? '');
    if (decimal === undefined) return undefined;
    const major = side === minor ? shift(decimal, -digits) : decimal;
    return rule.rounding === undefined ? major : roundTo(major, digits, rule.rounding);
  };
  const name = ruleName(
    rulePart('decimal'),
    rulePart('minorUnits', currency),
    rule.rounding !== undefined && rulePart('rounding', rule.rounding),
  );
  const [a, b] = [value(source, 'source'), value(downstream, 'downstream')];
  if (a === undefined || b === undefined) return different(name);
  if (textOf(a) !== textOf(b)) return withTolerance(a, b, name, rule, { currency });
  return source.text === downstream.text ? same(name) : forgiven(name);
}

function withTolerance(
  a: Decimal | undefined,
  b: Decimal | undefined,
  name: string,
  rule: Rule,
  beside: Beside,
): Comparison {
  const tolerance = toleranceFor(rule, beside);
  if (tolerance === undefined) return different(name);
  if (typeof tolerance !== 'string') return tolerance;
  const named = ruleName(name, rulePart('tolerance', tolerance));
  // Numbers too large to expand have no difference that a tolerance could forgive.
  if (a === undefined || b === undefined) return different(named);
  const limit = decimalOf(tolerance.replace('%', ''));
  const isNear = tolerance.endsWith('%') ? isWithinPercent : isWithin;
  return limit !== undefined && isNear(a, b, limit) ? forgiven(named) : different(named);
}

/** The tolerance of the record's currency; a currency that the rule does not name gets none. */
function toleranceFor(rule: Rule, beside: Beside): string | undefined | { readonly undecided: string } {
  if (typeof rule.tolerance !== 'object') return rule.tolerance;
  const currency = currencyOf(beside);
  if (typeof currency !== 'string') return currency;
  return Object.hasOwn(rule.tolerance, currency) ? rule.tolerance[currency] : undefined;
}

function currencyOf({ currency }: Beside): string | { readonly undecided: string } {
  return currency ?? { undecided: 'the currency is not known' };
}
