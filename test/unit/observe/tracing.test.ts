import { describe, expect, test } from 'vitest';
import {
  isTraceId,
  mappedTraceId,
  newTraceId,
  parseTraceparent,
  traceparent,
  withSpan,
} from '../../../src/observe/tracing.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';

describe('trace ids', () => {
  test('a new one is valid and differs from the next', () => {
    expect(isTraceId(newTraceId())).toBe(true);
    expect(newTraceId()).not.toBe(newTraceId());
  });

  test.each(['', TRACE.toUpperCase(), '0'.repeat(32), TRACE.slice(1), `${TRACE}0`, `g${TRACE.slice(1)}`])(
    '%j is none',
    (text) => {
      expect(isTraceId(text)).toBe(false);
      expect(() => traceparent(text)).toThrow(RangeError);
    },
  );

  test('a record’s id of 32 hexadecimal digits is kept', () => {
    expect(mappedTraceId(TRACE)).toEqual({ traceId: TRACE, original: null });
    expect(mappedTraceId(TRACE.toUpperCase())).toEqual({ traceId: TRACE, original: null });
  });

  test.each(['order-4711', '0'.repeat(32), '', '01234567-89ab-cdef-0123-456789abcdef', '订单'])(
    'the id %j is hashed to a valid one, the same each time, and kept beside it',
    (original) => {
      const mapped = mappedTraceId(original);
      expect(isTraceId(mapped.traceId)).toBe(true);
      expect(mapped.original).toBe(original);
      expect(mappedTraceId(original)).toEqual(mapped);
    },
  );
});

describe('traceparent', () => {
  test('carries the trace and a new parent, sampled', () => {
    const header = traceparent(TRACE);
    expect(header).toMatch(/^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/);
    expect(traceparent(TRACE)).not.toBe(header);
    expect(parseTraceparent(header)).toMatchObject({ traceId: TRACE, sampled: true });
  });

  test.each([
    [`00-${TRACE}-b7ad6b7169203331-00`, false],
    [`cc-${TRACE}-b7ad6b7169203331-01-what-the-future-adds`, true],
  ])('%s is valid', (text, sampled) => {
    expect(parseTraceparent(text)).toEqual({ traceId: TRACE, spanId: 'b7ad6b7169203331', sampled });
  });

  test.each([
    '',
    `ff-${TRACE}-b7ad6b7169203331-01`,
    `00-${TRACE}-b7ad6b7169203331-01-more`,
    `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-b7ad6b7169203331-01`,
    `00-${TRACE}-b7ad6b7169203331`,
  ])('%j is not', (text) => {
    expect(parseTraceparent(text)).toBeNull();
  });
});

describe('withSpan without an SDK', () => {
  test('gives what the function gives, and throws what it throws', async () => {
    expect(await withSpan('run', { 'trueup.run': '1' }, async () => 5, traceparent(TRACE))).toBe(5);
    const failure = new Error('no');
    await expect(withSpan('run', {}, () => Promise.reject(failure))).rejects.toBe(failure);
  });

  test('puts the span into the trace of its parent', async () => {
    const traceId = await withSpan('run', {}, async (span) => span.spanContext().traceId, traceparent(TRACE));
    expect(traceId).toBe(TRACE);
  });
});
