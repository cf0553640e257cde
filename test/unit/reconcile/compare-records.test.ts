import { describe, expect, it } from 'vitest';
import { ruleSchema } from '../../../src/config/schema.ts';
import { comparePage } from '../../../src/reconcile/compare-page.ts';
import { compareKey } from '../../../src/reconcile/compare-records.ts';
import { digestRecords } from '../../../src/reconcile/digest.ts';
import type { SideRecord } from '../../../src/reconcile/record.ts';
import { record } from '../../support/records.ts';

const rules = {
  state: ruleSchema.parse('text'),
  amount: ruleSchema.parse('decimal'),
  note: ruleSchema.parse('ignore'),
};
const context = { rules, digestKey: 'k' };
const row = (state: string, amount: string, note = '') =>
  record('a', { state, amount: { type: 'decimal', text: amount }, note });
const unreadable = record('a', {
  state: 'PAID',
  amount: { type: 'undecided', text: 'x', reason: 'cannot be read as decimal' },
  note: '',
});

describe('the verdict about a key', () => {
  it('is match when every compared field agrees', () => {
    expect(compareKey(['a'], [row('PAID', '1', 'x')], [row('PAID', '1', 'y')], context)).toMatchObject({
      verdict: 'match',
      sourceDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  it('names each field that differs, with both values and the rule', () => {
    expect(compareKey(['a'], [row('PAID', '1')], [row('NEW', '2')], context)).toMatchObject({
      finding: {
        kind: 'mismatched',
        fields: [
          { field: 'state', source: { text: 'PAID' }, downstream: { text: 'NEW' }, rule: 'text' },
          { field: 'amount', rule: 'decimal' },
        ],
      },
    });
  });

  it('is missing or extra when one side has none', () => {
    expect(compareKey(['a'], [row('PAID', '1')], [], context)).toMatchObject({
      finding: { kind: 'missing', sourceCount: 1, downstreamCount: 0, downstreamDigest: null },
    });
    expect(compareKey(['a'], [], [row('PAID', '1')], context)).toMatchObject({ finding: { kind: 'extra' } });
    expect(compareKey(['a'], [], [], context)).toEqual({ verdict: 'match', sourceDigest: null });
  });

  it('is duplicate with counts when a side has several, also when the other has none', () => {
    const twice = [row('PAID', '1'), row('PAID', '1')];
    expect(compareKey(['a'], [row('PAID', '1')], twice, context)).toMatchObject({
      finding: { kind: 'duplicate', sourceCount: 1, downstreamCount: 2 },
    });
    expect(compareKey(['a'], twice, [], context)).toMatchObject({
      finding: { kind: 'duplicate', sourceCount: 2, downstreamCount: 0 },
    });
  });

  it('is undecided when a cell cannot be read and nothing else differs', () => {
    expect(compareKey(['a'], [unreadable], [row('PAID', '1')], context)).toMatchObject({
      verdict: 'undecided',
      reason: expect.stringContaining('amount'),
    });
  });

  it('is mismatched when another field really differs', () => {
    expect(compareKey(['a'], [unreadable], [row('NEW', '1')], context)).toMatchObject({
      finding: { kind: 'mismatched', fields: [{ field: 'state' }] },
    });
  });

  it.each([[[]], [['']], [['', '']]])('is undecided for the key %j', (key) => {
    expect(compareKey(key, [row('PAID', '1')], [], context)).toMatchObject({ verdict: 'undecided' });
  });

  it('is undecided when only the rule on the key makes records of several keys one', () => {
    const spelled = (stored: string) => ({ ...row('PAID', '1'), storedKey: [stored] });
    const collided = compareKey(['bob'], [spelled('bob'), spelled('Bob')], [row('PAID', '1')], context);
    expect(collided).toEqual({
      verdict: 'undecided',
      key: ['bob'],
      reason: 'the rule on the key makes one of 2 keys of the source: "Bob", "bob"',
      finding: null,
    });
    expect(compareKey(['bob'], [], [spelled('bob'), spelled('Bob')], context)).toMatchObject({
      reason: expect.stringContaining('downstream'),
    });
    expect(compareKey(['bob'], [spelled('Bob'), spelled('Bob')], [], context)).toMatchObject({
      finding: { kind: 'duplicate' },
    });
    expect(compareKey(['bob'], [spelled('Bob')], [spelled('bob')], context)).toMatchObject({
      verdict: 'match',
    });
  });

  it('names what only a rule makes equal', () => {
    const loose = { ...context, rules: { ...rules, amount: ruleSchema.parse({ tolerance: '1' }) } };
    expect(compareKey(['a'], [row('PAID', '1')], [row('PAID', '2')], loose)).toMatchObject({
      verdict: 'match',
      forgiven: [{ field: 'amount', rule: 'decimal, tolerance 1' }],
    });
    expect(compareKey(['a'], [row('PAID', '1')], [row('PAID', '1')], loose)).not.toHaveProperty('forgiven');
  });

  describe('of an amount by the currency of its record', () => {
    const amount = ruleSchema.parse({ minorUnits: 'downstream', currency: { field: 'currency' } });
    const money = { rules: { amount }, digestKey: 'k' };
    const sum = (text: string, currency?: string) =>
      record('a', {
        amount: { type: 'decimal', text },
        currency: currency === undefined ? { type: 'null' } : currency,
      });
    const judge = (a: SideRecord, b: SideRecord) => compareKey(['a'], [a], [b], money);

    it('reads the code from whichever side has it, in any case', () => {
      expect(judge(sum('1', 'usd'), sum('100', 'USD'))).toMatchObject({ verdict: 'match' });
      expect(judge(sum('1'), sum('100', 'USD'))).toMatchObject({ verdict: 'match' });
      expect(judge(sum('1', 'JPY'), sum('100'))).toMatchObject({ finding: { kind: 'mismatched' } });
    });

    it('is undecided when the sides contradict each other, or neither says it', () => {
      expect(judge(sum('1', 'USD'), sum('100', 'EUR'))).toMatchObject({
        verdict: 'undecided',
        reason: 'amount: amounts in USD and in EUR',
      });
      expect(judge(sum('1'), sum('1'))).toMatchObject({
        reason: 'amount: no side says the currency in currency',
      });
    });

    it('has a digest that moves with the currency', () => {
      const digest = (currency: string) => {
        const verdict = judge(sum('1', currency), sum('7', currency));
        return verdict.verdict === 'differs' ? verdict.finding.sourceDigest : null;
      };
      expect(digest('USD')).toMatch(/^[0-9a-f]{64}$/);
      expect(digest('USD')).not.toBe(digest('EUR'));
    });
  });

  it('is refused when a compared field was not read', () => {
    const bare = record('a', { state: 'PAID' });
    expect(() => compareKey(['a'], [bare], [bare], context)).toThrow(/amount was not read/);
  });

  it('is given once per key of a page', () => {
    const verdicts = comparePage(
      [['a'], ['b']],
      [row('PAID', '1')],
      [record('b', row('N', '1').fields)],
      context,
    );
    expect(
      [...verdicts].map(([key, verdict]) => [key, verdict.verdict === 'differs' && verdict.finding.kind]),
    ).toEqual([
      ['["a"]', 'missing'],
      ['["b"]', 'extra'],
    ]);
  });
});

describe('a digest', () => {
  const of = (...records: Parameters<typeof digestRecords>[0]) => digestRecords(records, ['a', 'b'], 'k');

  it('is null without a record', () => expect(of()).toBeNull());

  it('does not depend on the order of the records, but on their number', () => {
    const [x, y] = [record('1', { a: 'x', b: 'y' }), record('1', { a: 'z', b: 'y' })];
    expect(of(x, y)).toBe(of(y, x));
    expect(of(x, x)).not.toBe(of(x));
  });

  it('sees text that moved from one field to the next', () => {
    expect(of(record('1', { a: '12', b: '3' }))).not.toBe(of(record('1', { a: '1', b: '23' })));
    expect(of(record('1', { a: 'x', b: 'y' }))).not.toBe(of(record('1', { a: 'y', b: 'x' })));
  });

  it('keeps null apart from text', () => {
    expect(of(record('1', { a: { type: 'null' }, b: '' }))).not.toBe(
      of(record('1', { a: '', b: { type: 'null' } })),
    );
  });

  it('sees the scale where a rule keeps it', () => {
    const scaled = (scale: number) => record('1', { a: { type: 'decimal', text: '1.1', scale }, b: '' });
    expect(of(scaled(1))).not.toBe(of(scaled(2)));
  });

  it('is of no use without the key', () => {
    const records = [record('1', { a: 'x', b: 'y' })];
    expect(digestRecords(records, ['a', 'b'], 'k')).not.toBe(digestRecords(records, ['a', 'b'], 'other'));
    expect(digestRecords(records, ['b', 'a'], 'k')).toBe(digestRecords(records, ['a', 'b'], 'k'));
  });
});
