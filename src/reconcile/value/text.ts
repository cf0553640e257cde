import type { Rule } from '../../config/schema.ts';

type Folding = Pick<Rule, 'trim' | 'ignoreCase' | 'unicode'>;

/** The text as a rule wants it compared: Unicode form, white space at the ends, case. */
export function foldText(text: string, rule: Folding): string {
  let folded = rule.unicode === undefined ? text : text.normalize(rule.unicode);
  if (rule.trim) folded = folded.trim();
  return rule.ignoreCase ? folded.toLowerCase() : folded;
}

/** The name of the rule in reports: `text`, or `text, trimmed, ignoring case, NFC`. */
export function textRuleName(rule: Folding): string {
  const parts = ['text'];
  if (rule.trim) parts.push('trimmed');
  if (rule.ignoreCase) parts.push('ignoring case');
  if (rule.unicode !== undefined) parts.push(rule.unicode);
  return parts.join(', ');
}
