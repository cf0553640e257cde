import type { Rule } from '../../config/schema.ts';
import type { Value } from '../record.ts';
import { canonicalDecimal, type Decimal, decimalOf, isWithin } from './decimal.ts';
import { cutTo, microsOf } from './instant.ts';
import { foldText, textRuleName } from './text.ts';

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

type Typed = Extract<Value, { readonly text: string; readonly reason?: never }>;

/** Numbers compare by what they are worth, whichever of these types their side gave them. */
const NUMERIC: ReadonlySet<string> = new Set(['integer', 'decimal', 'float']);

/**
 * Compares two canonical values under a field's rule. Null equals only null: not `''`, not the text `NULL`. Values of
 * different types differ under the rule `type`, except numbers, and except where a value map says what means what.
 */
export function compareValues(source: Value, downstream: Value, rule: Rule): Comparison {
  if (rule.ignore) return { equal: true, rule: 'ignored', forgiven: false };
  if (source.type === 'undecided') return { undecided: `source ${source.reason}` };
  if (downstream.type === 'undecided') return { undecided: `downstream ${downstream.reason}` };
  if (source.type === 'null' || downstream.type === 'null') {
    return { equal: source.type === downstream.type, rule: 'null', forgiven: false };
  }
  const mapped = compareByMap(source, downstream, rule);
  if (mapped !== undefined) return mapped;
  if (NUMERIC.has(source.type) && NUMERIC.has(downstream.type)) {
    return compareNumbers(source, downstream, rule);
  }
  if (source.type !== downstream.type) return { equal: false, rule: 'type', forgiven: false };
  if (source.type === 'instant') return compareInstants(source.text, downstream.text, rule);
  if (source.type === 'text') return compareTexts(source.text, downstream.text, rule);
  return exactly(source, downstream, source.type);
}

/** A mapped source value means its counterpart and nothing else, not even itself. */
function compareByMap(source: Typed, downstream: Typed, rule: Rule): Comparison | undefined {
  const { map } = rule;
  if (map === undefined) return undefined;
  const spelling = [source.text, foldText(source.text, rule)].find((text) => Object.hasOwn(map, text));
  const meant = spelling === undefined ? undefined : map[spelling];
  if (meant === undefined) return undefined;
  const equal = foldText(downstream.text, rule) === foldText(meant, rule);
  return { equal, rule: 'value map', forgiven: equal && downstream.text !== source.text };
}

function compareNumbers(source: Typed, downstream: Typed, rule: Rule): Comparison {
  const name = source.type === downstream.type ? source.type : 'decimal';
  const [a, b] = [canonicalDecimal(source.text), canonicalDecimal(downstream.text)];
  if (a === b) return { equal: true, rule: name, forgiven: false };
  if (rule.tolerance === undefined) return { equal: false, rule: name, forgiven: false };
  const equal = withinTolerance(decimalOf(a ?? ''), decimalOf(b ?? ''), decimalOf(rule.tolerance));
  return { equal, rule: `${name} tolerance ${rule.tolerance}`, forgiven: equal };
}

/** NaN, infinities and numbers too large to expand have no difference that a tolerance could forgive. */
function withinTolerance(
  a: Decimal | undefined,
  b: Decimal | undefined,
  tolerance: Decimal | undefined,
): boolean {
  return a !== undefined && b !== undefined && tolerance !== undefined && isWithin(a, b, tolerance);
}

function compareInstants(source: string, downstream: string, rule: Rule): Comparison {
  const name = rule.precision === undefined ? 'instant' : `instant to the ${rule.precision}`;
  const [a, b] =
    rule.precision === undefined
      ? [source, downstream]
      : [cutTo(source, rule.precision), cutTo(downstream, rule.precision)];
  if (a === b) return { equal: true, rule: name, forgiven: source !== downstream };
  if (rule.within === undefined) return { equal: false, rule: name, forgiven: false };
  const [x, y] = [microsOf(a), microsOf(b)];
  const equal =
    x !== undefined && y !== undefined && (x < y ? y - x : x - y) <= BigInt(Math.round(rule.within * 1000));
  return { equal, rule: `${name} within ${rule.within}ms`, forgiven: equal };
}

function compareTexts(source: string, downstream: string, rule: Rule): Comparison {
  const equal = source === downstream || foldText(source, rule) === foldText(downstream, rule);
  return { equal, rule: textRuleName(rule), forgiven: equal && source !== downstream };
}

function exactly(source: Typed, downstream: Typed, name: string): Comparison {
  return { equal: source.text === downstream.text, rule: name, forgiven: false };
}
