import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  fingerprint,
  idempotencyKey,
  type KeyInput,
  withRevision,
} from '../../../src/compensate/idempotency-key.ts';

const input = (part: Partial<KeyInput> = {}): KeyInput => ({
  template: '{reconciliation}:{businessKey}:{operation}:{businessDate}',
  reconciliation: 'orders',
  key: ['A-1'],
  keyNames: ['order_no'],
  operation: 'missing',
  businessDate: '2026-11-30',
  source: {},
  downstream: {},
  from: undefined,
  ...part,
});
const key = (part?: Partial<KeyInput>) => idempotencyKey(input(part));

describe('idempotencyKey', () => {
  it('is readable for ordinary records', () => {
    expect(key()).toBe('orders:A-1:missing:2026-11-30');
    expect(key({ key: ['shop 7', 'Zürich:9'], keyNames: ['shop', 'no'] })).toBe(
      'orders:shop%207~Z%C3%BCrich%3A9:missing:2026-11-30',
    );
    expect(key({ businessDate: null })).toBe('orders:A-1:missing:%-');
    expect(key({ template: '{key.order_no}/{source.kind}', source: { kind: 'a/b' } })).toBe('A-1/a%2Fb');
  });

  it('gives no two different inputs the same key', () => {
    const part = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 6 }),
      fc.string({
        unit: fc.constantFrom('a', ':', '~', '%', '-', '/', '2', 'D', 'é', '\ud800'),
        maxLength: 6,
      }),
    );
    const one = fc.record({
      key: fc.tuple(part, part),
      operation: fc.constantFrom('missing', 'mismatched'),
      businessDate: fc.oneof(fc.constant(null), part),
      source: fc.record({ f: fc.oneof(fc.constant(null), part) }),
    });
    const templates = fc.constantFrom(
      '{reconciliation}:{businessKey}:{operation}:{businessDate}:{source.f}',
      '{key.a}-{key.b}|{operation}/{businessDate}_{source.f}',
    );
    fc.assert(
      fc.property(one, one, templates, (a, b, template) => {
        const common = { template, keyNames: ['a', 'b'] };
        const [first, second] = [key({ ...a, ...common }), key({ ...b, ...common })];
        expect(first === second).toBe(JSON.stringify(a) === JSON.stringify(b));
        expect(first).toMatch(/^[\x21-\x7e]{1,200}$/);
      }),
      { numRuns: 500 },
    );
  });

  it('stays within 200 characters, and keeps long keys apart', () => {
    const long = (end: string) => key({ key: [`${'x'.repeat(5000)}${end}`] });
    expect(long('a')).toHaveLength(200);
    expect(long('a')).toMatch(/^orders:x+~[0-9a-f]{64}$/);
    expect(long('a')).not.toBe(long('b'));
  });

  it('uses the original call’s key byte for byte', () => {
    expect(key({ from: 'request_id', source: { request_id: 'req:7%~ x' } })).toBe('req:7%~ x');
  });

  it('refuses an original key that fits no header', () => {
    for (const text of ['', 'ключ', 'a\nb', ' a', 'a ', 'x'.repeat(256)])
      expect(() => key({ from: 'id', source: { id: text } }), text).toThrow(/fits no HTTP header/);
    expect(() => key({ from: 'id', source: { id: null } })).toThrow(/is null/);
    expect(() => key({ from: 'id' })).toThrow(/no field of the source/);
  });

  it('refuses what is not the same at the next try (rule 6.1)', () => {
    for (const name of ['now', 'attempt', 'uuid', 'diffId', 'traceId', 'source.unmapped', 'key.other'])
      expect(() => key({ template: `{businessKey}:{${name}}` }), name).toThrow(
        /cannot be part of an idempotency key/,
      );
  });

  it('refuses templates under which records would share a key', () => {
    expect(() => key({ template: '{reconciliation}:{operation}' })).toThrow(/same for every record/);
    expect(() => key({ template: '{key.order_no}{operation}' })).toThrow(/run into each other/);
    expect(() => key({ template: '{key.order_no}2{operation}' })).toThrow(/run into each other/);
    expect(() => key({ template: '{businessKey} é' })).toThrow(/printable ASCII/);
  });
});

describe('withRevision', () => {
  it('appends a revision only above zero', () => {
    expect(withRevision('k', 0)).toBe('k');
    expect(withRevision('k', 2)).toBe('k:r2');
  });
});

describe('fingerprint', () => {
  const http = { type: 'http', method: 'POST', path: '/a', headers: { a: '1', b: '2' }, body: null } as const;

  it('ignores the order of members and nothing else', () => {
    const swapped = {
      body: null,
      headers: { b: '2', a: '1' },
      path: '/a',
      method: 'POST',
      type: 'http',
    } as const;
    expect(fingerprint(swapped)).toBe(fingerprint(http));
    expect(fingerprint({ ...http, body: '' })).not.toBe(fingerprint(http));
    const sql = { type: 'sql', statement: 's', expectRows: 1 } as const;
    expect(fingerprint({ ...sql, values: ['1', '2'] })).not.toBe(fingerprint({ ...sql, values: ['2', '1'] }));
  });
});
