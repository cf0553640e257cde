import { describe, expect, it } from 'vitest';
import { ruleSchema } from '../../../../src/config/schema.ts';
import type { ValueType } from '../../../../src/reconcile/record.ts';
import { unfairPairs } from '../../../../src/reconcile/value/unfair-pairs.ts';

type Native = readonly [ValueType, string];

const NUMERIC: Native = ['decimal', 'numeric(10,2)'];
const BIGINT: Native = ['integer', 'bigint'];
const DOUBLE: Native = ['float', 'double precision'];
const VARCHAR: Native = ['text', 'character varying(40)'];
const BYTEA: Native = ['bytes', 'bytea'];
const UUID: Native = ['uuid', 'uuid'];
const WITH_ZONE: Native = ['instant', 'timestamp with time zone'];
const WALL: Native = ['instant', 'timestamp without time zone'];
const WHOLE_SECONDS: Native = ['instant', 'timestamp(0) with time zone'];
const JSON_FIELD: Native = ['text', 'JSON at "/x"'];

function reasons(a: Native, b: Native, rule?: unknown, key: readonly string[] = []): readonly string[] {
  const column = ([type, native]: Native) => ({ name: 'x', type, native });
  const rules = rule === undefined ? {} : { x: ruleSchema.parse(rule) };
  return unfairPairs([column(a)], [column(b)], rules, key);
}

describe('pairs of columns', () => {
  it.each([
    [NUMERIC, BIGINT, {}],
    [NUMERIC, VARCHAR, 'decimal'],
    [UUID, VARCHAR, 'uuid'],
    [BIGINT, VARCHAR, { map: { '1': 'PAID' } }],
    [BYTEA, BIGINT, 'ignore'],
    [WITH_ZONE, WITH_ZONE, {}],
    [WITH_ZONE, WALL, { zone: 'UTC' }],
    [WITH_ZONE, WHOLE_SECONDS, { precision: 'second' }],
    [WITH_ZONE, JSON_FIELD, 'instant'],
    [NUMERIC, JSON_FIELD, { map: { a: 'b' } }],
    [DOUBLE, NUMERIC, { tolerance: '0.01' }],
    [NUMERIC, NUMERIC, { tolerance: '0.01' }],
  ] as const)('%j and %j are compared fairly under %j', (a, b, rule) => {
    expect(reasons(a, b, rule)).toEqual([]);
    expect(reasons(b, a, rule)).toEqual([]);
  });

  it.each([
    [
      NUMERIC,
      VARCHAR,
      {},
      /^x: the source is numeric\(10,2\) and the downstream character varying\(40\); values/,
    ],
    [BYTEA, BIGINT, 'integer', /^x: the source column is bytea, whose values cannot be read as integer$/],
    [BIGINT, BYTEA, 'integer', /^x: the downstream column is bytea/],
    [
      VARCHAR,
      VARCHAR,
      { tolerance: '0.01' },
      /^x: tolerance says nothing about character varying\(40\); it is for/,
    ],
    [NUMERIC, NUMERIC, { zone: 'UTC' }, /^x: zone says nothing about numeric/],
    [WALL, WITH_ZONE, {}, /^x: timestamp without time zone has no zone and the other side has one/],
    [WITH_ZONE, WHOLE_SECONDS, {}, /^x: .* keep different fractions of a second; give its rule a precision$/],
    [DOUBLE, NUMERIC, 'decimal', undefined],
    [DOUBLE, NUMERIC, {}, /^x: .*give its rule a tolerance$/],
  ] as const)('%j and %j under %j are told', (a, b, rule, sentence) => {
    const found = reasons(a, b, rule);
    if (sentence === undefined) expect(found).toEqual([]);
    else expect(found).toEqual([expect.stringMatching(sentence)]);
  });

  it('that make a key are told by their part', () => {
    expect(reasons(UUID, VARCHAR, undefined, ['x'])).toEqual([
      expect.stringMatching(/^key part x: the source is uuid .*keys pair by their canonical texts/),
    ]);
    expect(reasons(UUID, VARCHAR, 'uuid', ['x'])).toEqual([]);
    expect(reasons(BIGINT, NUMERIC, undefined, ['x'])).toEqual([]);
    expect(reasons(UUID, VARCHAR)).toEqual([]);
  });
});
