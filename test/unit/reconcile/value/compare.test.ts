import { describe, expect, it } from 'vitest';
import { ruleSchema } from '../../../../src/config/schema.ts';
import type { Value, ValueType } from '../../../../src/reconcile/record.ts';
import { canonicalise } from '../../../../src/reconcile/value/canonicalise.ts';
import { compareValues } from '../../../../src/reconcile/value/compare.ts';

const rule = (input: unknown = {}) => ruleSchema.parse(input);
const value = (type: ValueType, text: string): Value => canonicalise(text, type);
const NULL: Value = { type: 'null' };

describe('comparing values', () => {
  it.each([
    ['decimal', '1.10', '1.1', {}, true, 'decimal', false],
    ['decimal', '10.00', '10.01', { tolerance: '0.01' }, true, 'decimal tolerance 0.01', true],
    ['decimal', '10.00', '10.02', { tolerance: '0.01' }, false, 'decimal tolerance 0.01', false],
    ['decimal', '90071992547409930.01', '90071992547409930.02', {}, false, 'decimal', false],
    ['decimal', 'NaN', 'NaN', {}, true, 'decimal', false],
    ['decimal', 'NaN', '1', { tolerance: '5' }, false, 'decimal tolerance 5', false],
    ['integer', '12345678901234567', '12345678901234568', {}, false, 'integer', false],
    ['text', 'a', 'a ', {}, false, 'text', false],
    [
      'text',
      ' Ä',
      'a\u0308 ',
      { trim: true, ignoreCase: true, unicode: 'NFC' },
      true,
      'text, trimmed, ignoring case, NFC',
      true,
    ],
    ['text', 'PAID', 'SUCCESS', { map: { PAID: 'SUCCESS' } }, true, 'value map', true],
    ['text', 'PAID', 'PAID', { map: { PAID: 'SUCCESS' } }, false, 'value map', false],
    ['text', 'NEW', 'NEW', { map: { PAID: 'SUCCESS' } }, true, 'text', false],
    ['text', 'toString', 'x', { map: { PAID: 'SUCCESS' } }, false, 'text', false],
    ['instant', '2026-01-01T00:00:00.1Z', '2026-01-01T00:00:00.9Z', {}, false, 'instant', false],
    [
      'instant',
      '2026-01-01T00:00:00.1Z',
      '2026-01-01T00:00:00.9Z',
      { precision: 'second' },
      true,
      'instant to the second',
      true,
    ],
    [
      'instant',
      '2026-01-01T00:00:00.9Z',
      '2026-01-01T00:00:01Z',
      { precision: 'second' },
      false,
      'instant to the second',
      false,
    ],
    [
      'instant',
      '2026-01-01T00:00:00Z',
      '2026-01-01T00:00:02Z',
      { within: '2s' },
      true,
      'instant within 2000ms',
      true,
    ],
    [
      'instant',
      '2026-01-01T00:00:00Z',
      '2026-01-01T00:00:02.000001Z',
      { within: '2s' },
      false,
      'instant within 2000ms',
      false,
    ],
    ['boolean', 't', '1', {}, true, 'boolean', false],
    ['json', '{"b":1,"a":2}', '{"a": 2, "b": 1.0}', {}, true, 'json', false],
  ] as const)('%s %j and %j under %j: equal %j by %j', (type, a, b, input, equal, name, forgiven) => {
    expect(compareValues(value(type, a), value(type, b), rule(input))).toEqual({
      equal,
      rule: name,
      forgiven,
    });
  });

  it('compares numbers of different types by their worth', () => {
    expect(compareValues(value('integer', '5'), value('decimal', '5.00'), rule())).toMatchObject({
      equal: true,
    });
    expect(compareValues(value('float', '0.1'), value('decimal', '0.1'), rule())).toMatchObject({
      equal: true,
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
