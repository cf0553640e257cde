import fc from 'fast-check';
import { expect, it } from 'vitest';
import { encodeRecord } from '../../src/reconcile/digest.ts';
import type { Value } from '../../src/reconcile/record.ts';
import { record } from '../support/records.ts';

const FIELDS = ['a', 'ab', 'b'];

/** Texts that joined columns confuse: separators, the names of nothing, digits of lengths, parts of each other. */
const text = fc.oneof(
  fc.constantFrom('', 'NULL', '<null>', 'null', 'text', 'a', 'b', 'ab', '|', ',', '\0', '12', '3', '1', '23'),
  fc.string({ unit: 'binary', maxLength: 6 }),
);
const value: fc.Arbitrary<Value> = fc.oneof(
  fc.constant<Value>({ type: 'null' }),
  fc
    .tuple(fc.constantFrom('text' as const, 'decimal' as const, 'json' as const), text)
    .map(([type, each]): Value => ({ type, text: each })),
  fc
    .tuple(text, fc.integer({ min: 0, max: 3 }))
    .map(([each, scale]): Value => ({ type: 'decimal', text: each, scale })),
);
const row = fc.tuple(value, value, value).map(([a, ab, b]) => record('k', { a, ab, b }));

/** What the bytes say, read back without knowing the record. */
function decode(bytes: Buffer): Record<string, Value> {
  const fields: Record<string, Value> = {};
  let at = 0;
  const next = () => {
    const from = at + 4;
    at = from + bytes.readUInt32BE(at);
    return bytes.toString('utf8', from, at);
  };
  while (at < bytes.length) {
    const [name, tag] = [next(), next()];
    const [, type = tag, scale] = /^(\w+) of scale (\d+)$/.exec(tag) ?? [];
    if (type === 'null') fields[name] = { type };
    else {
      const plain = { type, text: next() } as Extract<Value, { readonly scale?: number }>;
      fields[name] = scale === undefined ? plain : { ...plain, scale: Number(scale) };
    }
  }
  return fields;
}

it('the bytes of a record say all of its fields, so that no two records share them', () => {
  fc.assert(
    fc.property(row, (each) => {
      expect(decode(encodeRecord(each, FIELDS))).toEqual(each.fields);
    }),
    { numRuns: 1000 },
  );
});

it('two records have the same bytes only when they are the same', () => {
  fc.assert(
    fc.property(row, row, (one, other) => {
      const equal = JSON.stringify(one.fields) === JSON.stringify(other.fields);
      expect(encodeRecord(one, FIELDS).equals(encodeRecord(other, FIELDS))).toBe(equal);
    }),
    { numRuns: 1000 },
  );
});
