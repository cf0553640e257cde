import { describe, expect, it } from 'vitest';
import { errorRecord } from '../../../../src/compensate/retry/error-chain.ts';

describe('errorRecord', () => {
  it('keeps name, message, code, stack and the causes', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const record = errorRecord(new TypeError('fetch failed', { cause }));
    expect(record).toMatchObject({
      name: 'TypeError',
      message: 'fetch failed',
      code: null,
      cause: { name: 'Error', code: 'ECONNREFUSED', cause: null },
    });
    expect(record.stack).toContain('error-chain.test.ts');
  });

  it('keeps the members of an AggregateError', () => {
    const record = errorRecord(new AggregateError([new Error('one'), new RangeError('two')], 'all failed'));
    expect(record.errors.map((each) => each.message)).toEqual(['one', 'two']);
  });

  it('ends at a cycle and at a depth of 10', () => {
    const a = new Error('a');
    const b = new Error('b', { cause: a });
    a.cause = b;
    expect(errorRecord(a)).toMatchObject({ message: 'a', cause: { message: 'b', cause: null } });
    let chain = new Error('end');
    for (let depth = 0; depth < 50; depth++) chain = new Error('link', { cause: chain });
    expect(JSON.stringify(errorRecord(chain)).match(/"message"/g)).toHaveLength(11);
  });

  it('keeps a wide aggregate small', () => {
    const record = errorRecord(new AggregateError(Array.from({ length: 5000 }, (_, i) => new Error(`${i}`))));
    expect(record.errors.length).toBeLessThanOrEqual(20);
  });

  it('describes what is no error', () => {
    expect(errorRecord('text')).toMatchObject({ name: 'string', message: 'text', stack: null });
    expect(errorRecord(undefined)).toMatchObject({ name: 'undefined', message: 'undefined' });
    expect(errorRecord({ reason: 7 }).message).toContain('reason: 7');
    expect(errorRecord(Object.create(null)).name).toBe('object');
  });

  it('removes what jsonb refuses, and cuts what would fill the store', () => {
    expect(errorRecord(new Error('a\0b\ud800c')).message).toBe('a\ufffdb\ufffdc');
    expect(errorRecord(new Error('x'.repeat(1_000_000))).message.length).toBeLessThan(20_000);
  });
});
