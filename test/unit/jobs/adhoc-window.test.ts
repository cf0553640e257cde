import { describe, expect, it } from 'vitest';
import { parseLocal, readRequest } from '../../../src/jobs/adhoc-window.ts';

const BERLIN = 'Europe/Berlin';
const KATHMANDU = 'Asia/Kathmandu';

function refusal(fn: () => unknown): string {
  try {
    fn();
  } catch (error) {
    const { exit, message, hint } = error as { exit: number; message: string; hint: string };
    expect(exit).toBe(2);
    return `${message}; ${hint}`;
  }
  throw new Error('was not refused');
}

describe('a time that a person writes', () => {
  it.each([
    ['2026-11-30', '2026-11-29T23:00:00.000000Z'],
    ['2026-11-30T02:00', '2026-11-30T01:00:00.000000Z'],
    ['2026-11-30 02:00:30', '2026-11-30T01:00:30.000000Z'],
    ['2026-07-01T02:00:30.25', '2026-07-01T00:00:30.250000Z'],
    ['2026-11-30T02:00:30.123456', '2026-11-30T01:00:30.123456Z'],
    [' 2026-11-30T02:00 ', '2026-11-30T01:00:00.000000Z'],
    ['2026-11-30T02:00+08:00', '2026-11-29T18:00:00.000000Z'],
    ['2026-11-30T02:00Z', '2026-11-30T02:00:00.000000Z'],
    // An hour that exists twice, said exactly.
    ['2026-10-25T02:30+01:00', '2026-10-25T01:30:00.000000Z'],
  ])('%s is %s', (text, instant) => {
    expect(parseLocal(text, BERLIN)).toBe(instant);
  });

  it('may be in a zone with an odd offset', () => {
    expect(parseLocal('2026-11-30T02:00', KATHMANDU)).toBe('2026-11-29T20:15:00.000000Z');
  });

  it.each([
    '',
    'yesterday',
    '10:00',
    '2026',
    '2026-11',
    '20261130',
    '2026-W05-1',
    '2026-334',
    '2026-02-30',
    '2026-13-01',
    '2026-11-30T24:00',
    '2026-11-30T25:00',
    '2026-11-30T02:60',
    '2026-11-30T2:00',
    '2026-11-30T02',
    '30.11.2026',
    '1790000000',
    '2026-11-30T02:00 Berlin',
    '2026-11-30T02:00+99:00',
  ])('%j is no time', (text) => {
    expect(refusal(() => parseLocal(text, BERLIN))).toMatch(/is no time; write 2026-11-30/);
  });

  it('that the clocks skip is asked back with an offset', () => {
    expect(refusal(() => parseLocal('2026-03-29T02:30', BERLIN))).toMatch(
      /does not exist in Europe\/Berlin.*give the offset: 2026-03-29T03:30:00\+02:00/,
    );
  });

  it('that exists twice is asked back with both offsets', () => {
    expect(refusal(() => parseLocal('2026-10-25T02:30', BERLIN))).toMatch(
      /exists twice.*2026-10-25T02:30:00\+02:00 or 2026-10-25T02:30:00\+01:00/,
    );
  });
});

describe('a window that a person writes', () => {
  const read = (request: Parameters<typeof readRequest>[0]) => readRequest(request, BERLIN);

  it('is the last so many hours, or between two times', () => {
    expect(read({ last: '1h30m' })).toEqual({ kind: 'last', lengthMs: 5_400_000 });
    expect(read({ from: '2026-11-30T02:00' })).toEqual({
      kind: 'between',
      from: '2026-11-30T01:00:00.000000Z',
      to: null,
    });
  });

  it.each([
    [{}, /--from or --last is missing/],
    [{ to: '2026-11-30' }, /--from or --last is missing/],
    [{ last: '3h', from: '2026-11-30' }, /twice/],
    [{ last: '3h', to: '2026-11-30' }, /twice/],
    [{ last: 'soon' }, /--last "soon"/],
    [{ last: '0h' }, /--last "0h"/],
    [{ last: '-3h' }, /--last "-3h"/],
    [{ last: '3' }, /--last "3"/],
    [{ last: '99999d' }, /longer than ten years/],
    [{ from: '2026-11-30', to: '2026-11-29' }, /ends .* before it begins.*exchange/],
    [{ from: '2026-11-30', to: '2026-11-30' }, /empty/],
    // The same moment, written in two zones.
    [{ from: '2026-11-30T02:00', to: '2026-11-30T01:00Z' }, /empty/],
  ])('%j is refused', (request, words) => {
    expect(refusal(() => read(request))).toMatch(words);
  });
});
