import { canonicalDecimal } from './decimal.ts';

/** How a side writes numbers in texts, named by an example. */
export type NumberFormat = '1,234.56' | '1.234,56' | '1 234,56' | "1'234.56";

const MARKS: Readonly<Record<NumberFormat, { readonly group: string; readonly point: string }>> = {
  '1,234.56': { group: ',', point: '\\.' },
  '1.234,56': { group: '\\.', point: ',' },
  '1 234,56': { group: '[ \\u00a0\\u202f]', point: ',' },
  "1'234.56": { group: "['\\u2019]", point: '\\.' },
};

/**
 * The plain text of a number in a declared format: `1560.00` of `1,560.00`, of `¥1,560.00` and of `-$ 1,560.00`.
 * Groups are of three digits or not there at all: `1.56` is no number where the point separates groups, and so it
 * is not taken for 156. `undefined` when the text is not of the format.
 */
export function plainNumber(text: string, format: NumberFormat): string | undefined {
  const found = PATTERNS[format].exec(text.trim());
  if (!found) return undefined;
  const [, before = '', after = '', whole = '', fraction = ''] = found;
  if (before !== '' && after !== '') return undefined;
  const plain = `${before || after}${whole.replace(/\D/g, '')}${fraction === '' ? '' : `.${fraction}`}`;
  return canonicalDecimal(plain) === undefined ? undefined : plain;
}

const PATTERNS: Readonly<Record<NumberFormat, RegExp>> = {
  '1,234.56': patternOf('1,234.56'),
  '1.234,56': patternOf('1.234,56'),
  '1 234,56': patternOf('1 234,56'),
  "1'234.56": patternOf("1'234.56"),
};

/** Sign, currency sign, sign again (one of the two), digits with or without groups, fraction. */
function patternOf(format: NumberFormat): RegExp {
  const { group, point } = MARKS[format];
  const digits = `\\d{1,3}(?:${group}\\d{3})+|\\d+`;
  return new RegExp(`^([+-]?)\\s?(?:\\p{Sc}\\s?)?([+-]?)(${digits})(?:${point}(\\d+))?$`, 'u');
}
