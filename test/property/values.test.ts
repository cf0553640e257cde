import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Rule, ruleSchema } from '../../src/config/schema.ts';
import { VALUE_TYPES, type Value, type ValueType } from '../../src/reconcile/record.ts';
import { canonicalise, readingBy } from '../../src/reconcile/value/canonicalise.ts';
import { areSame, compareValues } from '../../src/reconcile/value/compare.ts';
import { decimalOf, roundTo, shift, textOf } from '../../src/reconcile/value/decimal.ts';

/** Texts of many types, and near misses of them. */
const text = fc.oneof(
  fc.constantFrom(
    ...[
      '',
      ' ',
      'a',
      'A',
      'a ',
      'NULL',
      'null',
      't',
      'false',
      '0',
      '-0',
      '1',
      '1.0',
      '1.10',
      '1e15',
      '1e400',
      'NaN',
    ],
    ...[
      'Infinity',
      '-infinity',
      '{1,2}',
      '{2,1,NULL}',
      '[1,2]',
      '["a"]',
      '{"a":1}',
      '\\x00ff',
      'AP8=',
      '24:00',
    ],
    ...['10:00:00.5', '2026-11-30', '2026-11-30 10:00:00', '2026-11-30T10:00:00.999999+01:00', '1,560.00'],
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
  ),
  fc.double().map(String),
  fc.bigInt().map(String),
  fc.json(),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  fc.string({ unit: 'binary', maxLength: 5 }),
);
const type = fc.constantFrom<ValueType>(...VALUE_TYPES);
const rule: fc.Arbitrary<Rule> = fc
  .constantFrom(
    ...[{}, { tolerance: '0.5' }, { tolerance: '1%' }, { scale: 'compare' }, { infiniteIsNull: true }],
    ...[{ precision: 'second' }, { within: '1s' }, { trim: true, ignoreCase: true }, { padded: true }],
    ...[
      { emptyIsNull: true },
      { numbers: 'float' },
      { repeats: 'ignore' },
      { unicode: 'NFC' },
      { zone: 'UTC' },
    ],
  )
  .map((raw) => ruleSchema.parse(raw));
const cell = fc.option(text, { nil: null });

const read = (raw: string | null, of: ValueType, by: Rule): Value => canonicalise(raw, of, readingBy(by));

describe('canonical values', () => {
  it('are read again as themselves', () => {
    fc.assert(
      fc.property(text, type, (raw, of) => {
        const once = canonicalise(raw, of, { zone: 'UTC' });
        if (once.type === 'null' || once.type === 'undecided') return;
        expect(canonicalise(once.text, of, { zone: 'UTC' })).toEqual(once);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('comparing', () => {
  it('says the same from either side, and forgives only what is not the same', () => {
    fc.assert(
      fc.property(cell, cell, type, rule, (a, b, of, by) => {
        const [x, y] = [read(a, of, by), read(b, of, by)];
        const there = compareValues(x, y, by);
        const back = compareValues(y, x, by);
        if ('undecided' in there || 'undecided' in back) {
          expect('undecided' in there && 'undecided' in back).toBe(true);
          return;
        }
        expect(back).toEqual(there);
        const texts = [x, y].map((value) => ('text' in value ? value.text : null));
        if (there.forgiven) expect(texts[0]).not.toBe(texts[1]);
        else if (there.equal) expect(texts[0]).toBe(texts[1]);
        if (there.forgiven) expect(there.equal).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });

  it('calls a readable value equal to itself under every rule', () => {
    fc.assert(
      fc.property(cell, type, rule, (raw, of, by) => {
        const value = read(raw, of, by);
        fc.pre(value.type !== 'undecided');
        expect(compareValues(value, value, by)).toMatchObject({ equal: true, forgiven: false });
        expect(areSame(value, value, by)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it('is left out only where it would find nothing', () => {
    fc.assert(
      fc.property(cell, cell, type, rule, (a, b, of, by) => {
        const [x, y] = [read(a, of, by), read(b, of, by)];
        if (areSame(x, y, by))
          expect(compareValues(x, y, by)).toMatchObject({ equal: true, forgiven: false });
      }),
      { numRuns: 2000 },
    );
  });
});

describe('moving and rounding a decimal', () => {
  const decimal = fc
    .tuple(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), fc.integer({ min: 0, max: 12 }))
    .map(([units, scale]) => ({ units, scale }));

  it('moves the point there and back without a loss', () => {
    fc.assert(
      fc.property(decimal, fc.integer({ min: -6, max: 6 }), (value, places) => {
        expect(textOf(shift(shift(value, places), -places))).toBe(textOf(value));
        expect(textOf(decimalOf(textOf(value)) ?? value)).toBe(textOf(value));
      }),
    );
  });

  it('rounds to a neighbour, by half a unit at most', () => {
    fc.assert(
      fc.property(decimal, fc.integer({ min: 0, max: 4 }), (value, scale) => {
        const unit = 10n ** BigInt(Math.max(0, value.scale - scale));
        const distance = (rounded: { units: bigint; scale: number }) =>
          rounded.units * 10n ** BigInt(value.scale - rounded.scale) - value.units;
        const floor = distance(roundTo(value, scale, 'floor'));
        expect(floor <= 0n && -floor < unit).toBe(true);
        for (const rounding of ['half-up', 'half-even'] as const) {
          const off = distance(roundTo(value, scale, rounding));
          expect((off < 0n ? -off : off) * 2n <= unit).toBe(true);
        }
      }),
    );
  });
});
