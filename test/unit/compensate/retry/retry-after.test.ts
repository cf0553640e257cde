import { describe, expect, it } from 'vitest';
import { parseRetryAfter } from '../../../../src/compensate/retry/retry-after.ts';

const NOW = Date.UTC(2026, 10, 30, 12, 0, 0);
const HOUR = 3_600_000;
const parse = (header: string | string[] | null | undefined) => parseRetryAfter(header, NOW, HOUR);

describe('parseRetryAfter', () => {
  it('reads seconds', () => {
    expect(parse('0')).toBe(0);
    expect(parse(' 120 ')).toBe(120_000);
    expect(parse(['30', '60'])).toBe(30_000);
  });

  it('reads an HTTP date', () => {
    expect(parse('Mon, 30 Nov 2026 12:01:30 GMT')).toBe(90_000);
    expect(parse('Monday, 30-Nov-26 12:01:30 GMT')).toBe(90_000);
  });

  it('clamps to [0, max]', () => {
    expect(parse('Mon, 30 Nov 2026 11:00:00 GMT')).toBe(0);
    expect(parse('999999999999')).toBe(HOUR);
    expect(parse('9'.repeat(400))).toBe(HOUR);
    expect(parse('Tue, 30 Nov 2027 12:00:00 GMT')).toBe(HOUR);
  });

  it('gives null for anything else, never NaN', () => {
    for (const junk of [
      '',
      'soon',
      '-1',
      '+5',
      '1.5',
      '1e3',
      '0x10',
      '12 s',
      '2026-11-30T12:00:00Z',
      'Mon, 31 Feb 2026 00:00:00 GMT',
      'NaN',
    ])
      expect(parse(junk), junk).toBeNull();
    expect(parse(undefined)).toBeNull();
    expect(parse(null)).toBeNull();
    expect(parse([])).toBeNull();
  });
});
