import type { Rule } from '../../config/schema.ts';
import { ruleName, rulePart } from './rule-name.ts';

type Folding = Pick<Rule, 'padded' | 'trim' | 'ignoreCase' | 'unicode'>;

/** The text as a rule wants it compared: Unicode form, fill and white space at the ends, case. */
export function foldText(text: string, rule: Folding): string {
  let folded = rule.unicode === undefined ? text : text.normalize(rule.unicode);
  if (rule.padded) folded = withoutBlanks(folded);
  if (rule.trim) folded = folded.trim();
  return rule.ignoreCase ? folded.toLowerCase() : folded;
}

/** Without the blanks that fill up a `CHAR(n)`. Other white space is no fill. */
function withoutBlanks(text: string): string {
  return text.replace(/ +$/, '');
}

/** The name of the rule in reports: `text`, or `text, trimmed, ignoring case, in NFC`. */
export function textRuleName(rule: Folding): string {
  return ruleName(
    rulePart('text'),
    rule.padded && rulePart('padded'),
    rule.trim && rulePart('trim'),
    rule.ignoreCase && rulePart('ignoreCase'),
    rule.unicode !== undefined && rulePart('unicode', rule.unicode),
  );
}

/** What `trim` removes, for a side that has to do the same in its own language. */
export const WHITE_SPACE =
  '\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff';

/** True when the rule of a key field makes other texts of keys. */
export function foldsKey(rule: Rule): boolean {
  return !rule.ignore && (rule.padded || rule.trim || rule.ignoreCase);
}

/**
 * A part of a key as the rule on its field wants it. Case is folded for A to Z only: every database does that the same
 * way, whatever its language, and a key that one side folds and the other does not would be missing.
 */
export function foldKey(text: string, rule: Rule): string {
  const folded = foldText(text, { padded: rule.padded, trim: rule.trim, ignoreCase: false });
  return rule.ignoreCase ? folded.replace(/[A-Z]/g, (letter) => letter.toLowerCase()) : folded;
}
