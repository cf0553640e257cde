import { describe, expect, it } from 'vitest';
import { ruleSchema } from '../../../../src/config/schema.ts';
import type { Value, ValueType } from '../../../../src/reconcile/record.ts';
import { canonicalise, readingBy } from '../../../../src/reconcile/value/canonicalise.ts';
import { compareValues } from '../../../../src/reconcile/value/compare.ts';
import { RULE_PARTS } from '../../../../src/reconcile/value/rule-name.ts';

const rule = (input: unknown = {}) => ruleSchema.parse(input);
const value = (type: ValueType, text: string): Value => canonicalise(text, type);
const NULL: Value = { type: 'null' };

type Outcome = 'same' | 'forgiven' | 'differ' | 'undecided';

/** Type, both texts (null is null), the rule besides its type, what it makes of them, and by which name. */
const PAIRS: readonly (readonly [ValueType, string | null, string | null, object, Outcome, string])[] = [
  ['decimal', '1.10', '1.1', {}, 'same', 'decimal'],
  ['decimal', '1.10', '1.1', { scale: 'compare' }, 'differ', 'decimal, with scale'],
  ['decimal', '1.10', '1.10', { scale: 'compare' }, 'same', 'decimal, with scale'],
  ['decimal', '10.00', '10.01', { tolerance: '0.01' }, 'forgiven', 'decimal, tolerance 0.01'],
  ['decimal', '10.00', '10.02', { tolerance: '0.01' }, 'differ', 'decimal, tolerance 0.01'],
  ['decimal', '-10.00', '-10.01', { tolerance: '0.01' }, 'forgiven', 'decimal, tolerance 0.01'],
  ['decimal', '100', '99.9', { tolerance: '0.1%' }, 'forgiven', 'decimal, tolerance 0.1%'],
  ['decimal', '100', '99.89', { tolerance: '0.1%' }, 'differ', 'decimal, tolerance 0.1%'],
  ['decimal', '-100', '-99.9', { tolerance: '0.1%' }, 'forgiven', 'decimal, tolerance 0.1%'],
  ['decimal', '0.01', '-0.01', { tolerance: '0.1%' }, 'differ', 'decimal, tolerance 0.1%'],
  ['decimal', '90071992547409930.01', '90071992547409930.02', {}, 'differ', 'decimal'],
  ['decimal', 'NaN', 'NaN', {}, 'same', 'NaN is itself'],
  ['decimal', 'NaN', '1', { tolerance: '5' }, 'differ', 'unrepresentable'],
  ['decimal', 'Infinity', null, {}, 'differ', 'unrepresentable'],
  ['decimal', null, '-Infinity', { infiniteIsNull: true }, 'forgiven', 'infinite is null'],
  ['decimal', '7', null, { infiniteIsNull: true }, 'differ', 'null'],
  ['integer', '12345678901234567', '12345678901234568', {}, 'differ', 'integer'],
  ['float', '0', '-0', {}, 'forgiven', 'float, minus zero is zero'],
  ['float', 'NaN', 'NaN', {}, 'same', 'NaN is itself'],
  ['float', 'Infinity', 'Infinity', {}, 'same', 'float'],
  ['float', '14.22035', '14.2204', {}, 'differ', 'float'],
  ['float', '14.22035', '14.2204', { tolerance: '0.001%' }, 'forgiven', 'float, tolerance 0.001%'],
  ['text', 'a', 'a ', {}, 'differ', 'text'],
  ['text', 'a', 'a  ', { padded: true }, 'forgiven', 'text, padded'],
  ['text', 'a', ' a', { padded: true }, 'differ', 'text, padded'],
  ['text', 'a', 'a\n', { padded: true }, 'differ', 'text, padded'],
  ['text', 'a', '\ta\u3000', { trim: true }, 'forgiven', 'text, trimmed'],
  ['text', 'a', 'A', { ignoreCase: true }, 'forgiven', 'text, ignoring case'],
  ['text', 'ﬁ', 'fi', { unicode: 'NFKC' }, 'forgiven', 'text, in NFKC'],
  ['text', 'ﬁ', 'fi', { unicode: 'NFC' }, 'differ', 'text, in NFC'],
  [
    'text',
    ' Ä',
    'a\u0308 ',
    { trim: true, ignoreCase: true, unicode: 'NFC' },
    'forgiven',
    'text, trimmed, ignoring case, in NFC',
  ],
  ['text', '', null, {}, 'differ', 'null'],
  ['text', '', null, { emptyIsNull: true }, 'forgiven', 'empty is null'],
  ['text', null, '  ', { emptyIsNull: true }, 'differ', 'null'],
  ['text', null, '  ', { emptyIsNull: true, trim: true }, 'forgiven', 'empty is null'],
  ['text', 'PAID', 'SUCCESS', { map: { PAID: 'SUCCESS' } }, 'forgiven', 'value map'],
  ['text', 'PAID', 'PAID', { map: { PAID: 'SUCCESS' } }, 'differ', 'value map'],
  ['text', 'NEW', 'NEW', { map: { NEW: 'NEW' } }, 'same', 'value map'],
  ['text', 'NEW', 'NEW', { map: { PAID: 'SUCCESS' } }, 'same', 'text'],
  ['text', 'toString', 'x', { map: { PAID: 'SUCCESS' } }, 'differ', 'text'],
  ['instant', '2026-01-01T00:00:00.1Z', '2026-01-01T00:00:00.9Z', {}, 'differ', 'instant'],
  [
    'instant',
    '2026-01-01T00:00:00.1Z',
    '2026-01-01T00:00:00.9Z',
    { precision: 'second' },
    'forgiven',
    'instant, to the second',
  ],
  [
    'instant',
    '2026-01-01T00:00:00.9Z',
    '2026-01-01T00:00:01Z',
    { precision: 'second' },
    'differ',
    'instant, to the second',
  ],
  [
    'instant',
    '2026-12-31T23:59:59.5Z',
    '2027-01-01T00:00:00Z',
    { precision: 'second', rounding: 'half-up' },
    'forgiven',
    'instant, to the second, rounded half-up',
  ],
  [
    'instant',
    '1969-12-31T23:59:59.9Z',
    '1969-12-31T23:59:59Z',
    { precision: 'second' },
    'forgiven',
    'instant, to the second',
  ],
  [
    'instant',
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00:02Z',
    { within: '2s' },
    'forgiven',
    'instant, within 2000ms',
  ],
  [
    'instant',
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00:02.000001Z',
    { within: '2s' },
    'differ',
    'instant, within 2000ms',
  ],
  ['instant', 'infinity', 'infinity', {}, 'same', 'instant'],
  ['instant', 'infinity', '9999-12-31T00:00:00Z', { within: '2s' }, 'differ', 'unrepresentable'],
  ['date', '2026-11-30', '2026-12-01', { within: '1d' }, 'forgiven', 'date, within 86400000ms'],
  ['date', '2026-11-30', '2026-12-02', { within: '1d' }, 'differ', 'date, within 86400000ms'],
  ['date', '10000-01-01', '10000-01-02', { within: '1d' }, 'differ', 'date'],
  ['time', '10:00', '10:00:00.0', {}, 'same', 'time'],
  ['time', '24:00', '00:00', {}, 'differ', 'time'],
  ['time', '10:00:00.9', '10:00:00', { precision: 'second' }, 'forgiven', 'time, to the second'],
  ['time', '10:00:00', '10:00:02', { within: '2s' }, 'forgiven', 'time, within 2000ms'],
  ['boolean', 't', '1', {}, 'same', 'boolean'],
  ['uuid', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'a0eebc999c0b4ef8bb6d6bb9bd380a11', {}, 'same', 'uuid'],
  ['json', '{"b":1,"a":2}', '{"a": 2, "b": 1.0}', {}, 'same', 'json'],
  ['json', '[1e15]', '[1000000000000000]', {}, 'same', 'json'],
  ['json', '4.3319172962174079e299', '4.331917296217408e299', {}, 'differ', 'json'],
  [
    'json',
    '{"a":4.3319172962174079e299}',
    '{"a":4.331917296217408e299}',
    { numbers: 'float' },
    'forgiven',
    'json, numbers as floats',
  ],
  ['json', '[1,2]', '[2,1]', { numbers: 'float' }, 'differ', 'json, numbers as floats'],
  ['bytes', '\\x61', '\\x610000', {}, 'differ', 'bytes'],
  ['bytes', '\\x61', '\\x610000', { padded: true }, 'forgiven', 'bytes, padded'],
  ['bytes', '\\x10', '\\x1000', { padded: true }, 'forgiven', 'bytes, padded'],
  ['bytes', '\\x10', '\\x01', { padded: true }, 'differ', 'bytes, padded'],
  ['array', '{1,2}', '[1,2]', {}, 'same', 'array'],
  ['array', '{1,2}', '{2,1}', {}, 'differ', 'array'],
  ['set', '{1,2}', '{2,1}', {}, 'forgiven', 'set'],
  ['set', '{1,1,2}', '{2,1}', {}, 'differ', 'set'],
  ['set', '{1,1,2}', '{2,1}', { repeats: 'ignore' }, 'forgiven', 'set, ignoring repeats'],
  ['set', '{NULL}', '{"NULL"}', {}, 'differ', 'set'],
];

describe('comparing values', () => {
  it.each(PAIRS)('%s %j and %j under %j: %s by %j', (type, a, b, more, outcome, name) => {
    const by = rule(more);
    const [x, y] = [canonicalise(a, type, readingBy(by)), canonicalise(b, type, readingBy(by))];
    for (const [source, downstream] of 'map' in more
      ? [[x, y] as const]
      : ([
          [x, y],
          [y, x],
        ] as const)) {
      expect(compareValues(source, downstream, by)).toEqual({
        equal: outcome !== 'differ',
        rule: name,
        forgiven: outcome === 'forgiven',
      });
    }
  });

  it('names rules by parts that the reference page lists', () => {
    const known = RULE_PARTS.map((part) => new RegExp(`^${part.replace('{}', '\\S+')}$`));
    for (const part of PAIRS.flatMap(([, , , , , name]) => name.split(', '))) {
      expect(
        known.some((pattern) => pattern.test(part)),
        part,
      ).toBe(true);
    }
  });

  it('compares a float of 32 bits with one of 64 at the narrower precision', () => {
    const single = (text: string) => canonicalise(text, 'float', { single: true });
    const copied = value('float', '0.10000000149011612');
    const name = 'float, at single precision';
    expect(compareValues(single('0.1'), copied, rule())).toEqual({ equal: true, rule: name, forgiven: true });
    expect(compareValues(copied, single('0.1'), rule())).toMatchObject({ equal: true, rule: name });
    expect(compareValues(single('0.1'), value('float', '0.1000001'), rule())).toMatchObject({ equal: false });
    expect(compareValues(value('float', '0.1'), copied, rule())).toMatchObject({
      equal: false,
      rule: 'float',
    });
    expect(compareValues(single('0.1'), single('0.10000001'), rule())).toMatchObject({ equal: false });
  });

  it.each([
    ['12.34', '1234', 'USD', 'forgiven'],
    ['12.34', '1234', 'KWD', 'differ'],
    ['12.340', '12340', 'KWD', 'forgiven'],
    ['1234', '1234', 'JPY', 'same'],
    ['0.1234', '1234', 'CLF', 'forgiven'],
    ['12.34', '1235', 'USD', 'differ'],
    ['-12.34', '-1234', 'USD', 'forgiven'],
    ['90071992547409930.01', '9007199254740993001', 'USD', 'forgiven'],
  ] as const)(
    'moves the point between %s and %s minor units of %s: %s',
    (major, minor, currency, outcome) => {
      const [a, b] = [value('decimal', major), value('integer', minor)];
      const expected = {
        equal: outcome !== 'differ',
        rule: `decimal, minor units of ${currency}`,
        forgiven: outcome === 'forgiven',
      };
      expect(compareValues(a, b, rule({ minorUnits: 'downstream' }), { currency })).toEqual(expected);
      expect(compareValues(b, a, rule({ minorUnits: 'source' }), { currency })).toEqual(expected);
    },
  );

  it.each([
    ['1.005', '101', 'half-up', true],
    ['-1.005', '-101', 'half-up', true],
    ['1.005', '100', 'half-even', true],
    ['1.015', '102', 'half-even', true],
    ['1.009', '100', 'floor', true],
    ['-1.001', '-101', 'floor', true],
    ['1.005', '100', 'half-up', false],
  ] as const)('rounds %s to %s minor units %s: %j', (major, minor, rounding, equal) => {
    const by = rule({ minorUnits: 'downstream', rounding });
    expect(compareValues(value('decimal', major), value('integer', minor), by, { currency: 'USD' })).toEqual({
      equal,
      rule: `decimal, minor units of USD, rounded ${rounding}`,
      forgiven: equal,
    });
  });

  it('says nothing of an amount whose currency is not known or has no minor unit', () => {
    const by = rule({ minorUnits: 'downstream' });
    const [a, b] = [value('decimal', '1'), value('integer', '1')];
    expect(compareValues(a, b, by)).toEqual({ undecided: 'the currency is not known' });
    expect(compareValues(a, b, by, { currency: 'XAU' })).toEqual({
      undecided: 'XAU has no minor unit in ISO 4217',
    });
    expect(compareValues(a, b, by, { currency: { undecided: 'amounts in USD and in EUR' } })).toEqual({
      undecided: 'amounts in USD and in EUR',
    });
  });

  it('takes the tolerance of the currency, and none for one that is not named', () => {
    const by = rule({ tolerance: { USD: '0.01', JPY: '1' } });
    const [a, b] = [value('decimal', '10'), value('decimal', '10.5')];
    expect(compareValues(a, b, by, { currency: 'JPY' })).toMatchObject({
      equal: true,
      rule: 'decimal, tolerance 1',
    });
    expect(compareValues(a, b, by, { currency: 'USD' })).toMatchObject({
      equal: false,
      rule: 'decimal, tolerance 0.01',
    });
    expect(compareValues(a, b, by, { currency: 'EUR' })).toMatchObject({ equal: false, rule: 'decimal' });
    expect(compareValues(a, b, by)).toHaveProperty('undecided');
    expect(compareValues(a, a, by)).toMatchObject({ equal: true });
  });

  it('compares numbers of different types by their worth', () => {
    expect(compareValues(value('integer', '5'), value('decimal', '5.00'), rule())).toMatchObject({
      equal: true,
    });
    expect(compareValues(value('float', '0.1'), value('decimal', '0.1'), rule())).toMatchObject({
      equal: true,
    });
  });

  it('names minus zero beside an exact zero too', () => {
    expect(compareValues(value('float', '-0'), value('decimal', '0'), rule())).toEqual({
      equal: true,
      rule: 'decimal, minus zero is zero',
      forgiven: true,
    });
  });

  it('calls other differences of type by their name', () => {
    expect(compareValues(value('integer', '5'), value('text', '5'), rule())).toMatchObject({
      equal: false,
      rule: 'type',
    });
  });

  it.each(['', 'NULL', '<null>'])('keeps null apart from the text %j', (text) => {
    expect(compareValues(NULL, value('text', text), rule())).toMatchObject({ equal: false, rule: 'null' });
    expect(compareValues(value('text', text), NULL, rule())).toMatchObject({ equal: false, rule: 'null' });
  });

  it('takes two nulls for equal', () => {
    expect(compareValues(NULL, NULL, rule())).toMatchObject({ equal: true, rule: 'null' });
  });

  it('says nothing about a cell that cannot be read', () => {
    const unreadable = value('integer', 'x');
    expect(compareValues(unreadable, value('integer', '1'), rule())).toHaveProperty('undecided');
    expect(compareValues(value('integer', '1'), unreadable, rule())).toHaveProperty('undecided');
    expect(compareValues(unreadable, NULL, rule('ignore'))).toMatchObject({ equal: true, rule: 'ignored' });
  });
});
