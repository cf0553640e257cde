import { describe, expect, it } from 'vitest';
import { configSchema } from '../../../src/config/schema.ts';
import { type Instant, parseInstant } from '../../../src/reconcile/instant.ts';
import { chunks, scheduledWindow, type WindowInput } from '../../../src/reconcile/window.ts';
import { at } from '../../support/records.ts';

const policyOf = (window: object) => {
  const side = { type: 'postgres', url: 'postgres://h/d', table: 't' };
  const pair = { source: side, downstream: side, key: ['k'], compare: {}, window };
  const config = configSchema.parse({ version: 1, reconciliations: { a: pair } });
  const policy = config.reconciliations['a']?.window;
  if (policy === undefined) throw new Error('no policy');
  return policy;
};
const moment = (text: string): Instant => parseInstant(text) ?? at('00:00');
const schedule = (window: object, input: Partial<WindowInput> = {}) =>
  scheduledWindow({
    policy: policyOf(window),
    coverage: null,
    sourceNow: at('12:00:30'),
    oldestOpen: null,
    seesTransactions: true,
    zone: 'UTC',
    ...input,
  });

describe('the window of a scheduled run', () => {
  it('covers the lookback up to the settled time', () => {
    expect(schedule({ lookback: '1h', settle: '30s' })).toEqual({
      window: { from: at('11:00'), to: at('12:00') },
      heldBackMs: 0,
      capped: false,
    });
  });

  it('reaches back to the coverage after downtime, however long', () => {
    const { window } = schedule({ lookback: '1h' }, { coverage: moment('2026-11-03T00:00:00Z') });
    expect(window).toEqual({ from: moment('2026-11-03T00:00:00Z'), to: at('12:00') });
  });

  it('reads the lookback again for late records when the coverage is recent', () => {
    expect(schedule({ lookback: '1h' }, { coverage: at('11:59') }).window.from).toBe(at('11:00'));
  });

  it('stays behind the oldest open transaction', () => {
    expect(schedule({ lookback: '1h' }, { oldestOpen: at('11:55:00.000001') })).toEqual({
      window: { from: at('10:55:00.000001'), to: at('11:55:00.000001') },
      heldBackMs: expect.closeTo(299_999.999),
      capped: false,
    });
  });

  it('is held back by maxHoldback at most, and says so', () => {
    expect(schedule({ lookback: '1h', maxHoldback: '15m' }, { oldestOpen: at('02:00') })).toEqual({
      window: { from: at('10:45'), to: at('11:45') },
      heldBackMs: 900_000,
      capped: true,
    });
  });

  it('waits for maxTransactionAge where transactions cannot be seen', () => {
    const { window } = schedule({ lookback: '1h', maxTransactionAge: '10m' }, { seesTransactions: false });
    expect(window.to).toBe(at('11:50:30'));
  });

  it('is never turned around by a hold-back', () => {
    const { window } = schedule({ lookback: '1m' }, { oldestOpen: at('11:50'), coverage: at('11:59') });
    expect(window).toEqual({ from: at('11:49'), to: at('11:50') });
  });

  it('is the previous local day, which a clock change makes longer', () => {
    const { window } = schedule(
      { day: 'yesterday' },
      { sourceNow: moment('2026-10-26T03:00:00Z'), zone: 'Europe/Berlin' },
    );
    expect(window).toEqual({ from: moment('2026-10-24T22:00:00Z'), to: moment('2026-10-25T23:00:00Z') });
  });

  it('adds the days that were not covered', () => {
    const { window } = schedule({ day: 'yesterday' }, { coverage: moment('2026-11-27T00:00:00Z') });
    expect(window).toEqual({ from: moment('2026-11-27T00:00:00Z'), to: moment('2026-11-30T00:00:00Z') });
  });

  it('ends before midnight when yesterday has not settled yet', () => {
    const { window, heldBackMs } = schedule(
      { day: 'yesterday', settle: '30s' },
      { sourceNow: at('00:00:10') },
    );
    expect(window.to).toBe(moment('2026-11-29T23:59:40Z'));
    expect(heldBackMs).toBe(0);
  });
});

describe('chunks', () => {
  it('end with a shorter one', () => {
    expect(chunks({ from: at('10:00'), to: at('12:30') }, 3_600_000)).toEqual([
      { from: at('10:00'), to: at('11:00') },
      { from: at('11:00'), to: at('12:00') },
      { from: at('12:00'), to: at('12:30') },
    ]);
  });

  it('of an empty window are none', () =>
    expect(chunks({ from: at('10:00'), to: at('10:00') }, 1000)).toEqual([]));
  it('have a length', () =>
    expect(() => chunks({ from: at('10:00'), to: at('11:00') }, 0)).toThrow(RangeError));
});
