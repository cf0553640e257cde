import { describe, expect, it } from 'vitest';
import { reasonText } from '../../../src/cli/reason.ts';
import { watermarkRequest } from '../../../src/cli/watermark-request.ts';

describe('what `trueup watermark TARGET` is asked for', () => {
  it('shows, sets or clears', () => {
    expect(watermarkRequest(undefined, {})).toEqual({ kind: 'show' });
    expect(watermarkRequest('50', { for: '2h', reason: 'slow' })).toEqual({
      kind: 'set',
      perMinute: 50,
      for: '2h',
      reason: 'slow',
    });
    expect(watermarkRequest(undefined, { clear: true, reason: 'well' })).toEqual({
      kind: 'clear',
      reason: 'well',
    });
  });

  it.each([
    ['50', { clear: true, reason: 'x' }, /--clear takes no number/],
    [undefined, { clear: true, for: '2h', reason: 'x' }, /--clear takes no number/],
    [undefined, { for: '2h', reason: 'x' }, /--for needs a number/],
    ['50', {}, /needs --reason/],
    [undefined, { clear: true }, /needs --reason/],
    ['0', { reason: 'x' }, /no whole number/],
    ['-5', { reason: 'x' }, /no whole number/],
    ['5.5', { reason: 'x' }, /no whole number/],
    ['1e3', { reason: 'x' }, /no whole number/],
    ['many', { reason: 'x' }, /no whole number/],
    ['50', { for: 'ever', reason: 'x' }, /--for "ever" is no duration/],
    ['50', { for: '0s', reason: 'x' }, /--for "0s" is no duration/],
  ])('refuses %j with %j', (n, options, words) => {
    expect(() => watermarkRequest(n, options)).toThrow(words);
  });
});

describe('a reason', () => {
  it('must say something', () => {
    expect(reasonText(' gateway is back ')).toBe('gateway is back');
    expect(() => reasonText('')).toThrow(/says nothing/);
    expect(() => reasonText(' \t')).toThrow(/says nothing/);
  });
});
