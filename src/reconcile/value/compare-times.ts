import type { Rule } from '../../config/schema.ts';
import { type Comparison, different, forgiven, same, type Typed } from './comparison.ts';
import { dayNumberOf } from './date.ts';
import { atPrecision, microsOf } from './instant.ts';
import { ruleName, rulePart } from './rule-name.ts';
import { microsOfDay } from './time.ts';

type TimeType = 'instant' | 'date' | 'time';

const MICROS_A_DAY = 86_400_000_000n;

export function isTime(type: string): type is TimeType {
  return type === 'instant' || type === 'date' || type === 'time';
}

/** Compares two instants, dates or times of day, brought to a precision, with the distance that the rule forgives. */
export function compareTimes(source: Typed, downstream: Typed, type: TimeType, rule: Rule): Comparison {
  const precise = type !== 'date' && rule.precision !== undefined;
  const name = ruleName(
    rulePart(type),
    precise && rulePart('precision', rule.precision),
    precise && rule.rounding !== undefined && rulePart('rounding', rule.rounding),
  );
  if (source.text === downstream.text) return same(name);
  const [x, y] = [microsAt(source.text, type, rule), microsAt(downstream.text, type, rule)];
  // PostgreSQL's infinities are no distance from anything, and other systems cannot hold them.
  if (x === undefined || y === undefined) {
    const infinite = [source.text, downstream.text].some((text) => text.endsWith('infinity'));
    return different(infinite ? rulePart('unrepresentable') : name);
  }
  if (x === y) return forgiven(name);
  if (rule.within === undefined) return different(name);
  const named = ruleName(name, rulePart('within', `${rule.within}ms`));
  const distance = x < y ? y - x : x - y;
  return distance <= BigInt(rule.within) * 1000n ? forgiven(named) : different(named);
}

function microsAt(text: string, type: TimeType, rule: Rule): bigint | undefined {
  if (type === 'date') {
    const day = dayNumberOf(text);
    return day === undefined ? undefined : day * MICROS_A_DAY;
  }
  const micros = type === 'instant' ? microsOf(text) : microsOfDay(text);
  if (micros === undefined || rule.precision === undefined) return micros;
  return atPrecision(micros, rule.precision, rule.rounding ?? 'floor');
}
