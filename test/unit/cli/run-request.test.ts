import { describe, expect, it } from 'vitest';
import { type RunOptions, runRequest } from '../../../src/cli/run-request.ts';

const options = (values: Partial<RunOptions> = {}): RunOptions => ({ waitFor: '30m', ...values });

describe('what `trueup run` is asked for', () => {
  it('is a check of a window, which waits here for at most half an hour', () => {
    expect(runRequest(['payments', 'payments'], options({ last: '3h' }))).toEqual({
      kind: 'window',
      names: ['payments'],
      mode: 'check',
      window: { last: '3h' },
      watermark: null,
      end: 'here',
      waitForMs: 1_800_000,
      failOnDiff: false,
    });
  });

  it('is a stored plan', () => {
    const request = runRequest([], options({ plan: '7', watermark: '50', wait: true, yes: true }));
    expect(request).toMatchObject({ kind: 'plan', id: '7', watermark: 50, end: 'wait', yes: true });
  });

  it.each<[string, readonly string[], Partial<RunOptions>, RegExp]>([
    ['no name', [], { last: '3h' }, /say which reconciliation/],
    ['no window', ['a'], {}, /--from or --last is missing/],
    ['only an end', ['a'], { to: '2026-11-30' }, /--from or --last is missing/],
    ['two windows', ['a'], { last: '3h', from: '2026-11-30' }, /twice/],
    ['a mode that is none', ['a'], { last: '3h', mode: 'compensat' }, /no mode "compensat"/],
    ['a watermark for a check', ['a'], { last: '3h', watermark: '5' }, /sends nothing/],
    ['a watermark of 0', ['a'], { last: '3h', mode: 'plan', watermark: '0' }, /no whole number/],
    ['a negative watermark', ['a'], { last: '3h', mode: 'plan', watermark: '-5' }, /no whole number/],
    ['a watermark in parts', ['a'], { last: '3h', mode: 'plan', watermark: '1.5' }, /no whole number/],
    ['a watermark in words', ['a'], { last: '3h', mode: 'plan', watermark: 'fast' }, /no whole number/],
    ['a watermark in hex', ['a'], { last: '3h', mode: 'plan', watermark: '0x10' }, /no whole number/],
    ['a watermark that is empty', ['a'], { last: '3h', mode: 'plan', watermark: '' }, /no whole number/],
    ['a watermark beyond the store', ['a'], { last: '3h', mode: 'plan', watermark: '1e12' }, /no whole/],
    ['a plan and a name', ['a'], { plan: '7' }, /leave out a/],
    ['a plan and a window', [], { plan: '7', last: '3h' }, /leave out a window/],
    ['a plan and a mode', [], { plan: '7', mode: 'check' }, /leave out --mode check/],
    ['--yes to nothing', ['a'], { last: '3h', yes: true }, /--yes is for --plan/],
    ['waiting and not waiting', ['a'], { last: '3h', wait: true, detach: true }, /contradict/],
    ['waiting for ever', ['a'], { last: '3h', waitFor: 'ever' }, /--wait-for "ever"/],
    ['waiting for nothing', ['a'], { last: '3h', waitFor: '0s' }, /--wait-for "0s"/],
  ])('is not %s', (_, names, values, words) => {
    expect(() => runRequest(names, options(values))).toThrow(words);
    try {
      runRequest(names, options(values));
    } catch (error) {
      expect(error).toMatchObject({ exit: 2 });
    }
  });
});
