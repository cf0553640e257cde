import { expect, it } from 'vitest';
import { ruleSchema } from '../../../../src/config/schema.ts';
import { foldKey, foldsKey, WHITE_SPACE } from '../../../../src/reconcile/value/text.ts';

const fold = (text: string, rule: object) => foldKey(text, ruleSchema.parse(rule));

it('folds only what the rule says', () => {
  expect(fold(' Ab  ', { padded: true })).toBe(' Ab');
  expect(fold('\tAb\u3000', { trim: true })).toBe('Ab');
  expect(fold(' Ab', { ignoreCase: true })).toBe(' ab');
  expect(foldsKey(ruleSchema.parse('text'))).toBe(false);
  expect(foldsKey(ruleSchema.parse({ ignore: true, trim: true }))).toBe(false);
});

it('folds the case of A to Z and of nothing else, since databases differ about the rest', () => {
  expect(fold('ABÄİẞЖ', { ignoreCase: true })).toBe('abÄİẞЖ');
});

it('knows each character that trimming removes', () => {
  const trimmed = Array.from({ length: 0x10000 }, (_, unit) => String.fromCharCode(unit)).filter(
    (character) => character.trim() === '',
  );
  expect([...WHITE_SPACE].toSorted()).toEqual(trimmed.toSorted());
});
