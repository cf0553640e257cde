import { expect, it } from 'vitest';
import { nearest, suggest } from '../../../src/config/nearest.ts';

it.each([
  ['watermrak', ['watermark', 'reads'], 'watermark'],
  ['Lookback', ['lookback'], 'lookback'],
  ['tim', ['time', 'table'], 'time'],
  ['slak', ['webhook', 'slack'], 'slack'],
  ['x', ['y', 'zz'], 'y'],
  ['completely', ['different'], undefined],
  ['word', [], undefined],
])('%s among %j is %s', (word, candidates, expected) => {
  expect(nearest(word, candidates)).toBe(expected);
});

it('lists everything when nothing is near', () => {
  expect(suggest('qqqqqq', ['one', 'two'], 'targets')).toBe('targets: one, two');
  expect(suggest('one', [], 'targets')).toBe('there are no targets');
});
