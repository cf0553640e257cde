import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import { nextSlot, slotsBetween } from '../../../src/jobs/cron.ts';

const rules = (cron: string, more: Partial<Parameters<typeof nextSlot>[0]> = {}) => ({
  cron,
  gap: 'run-after' as const,
  overlap: 'first' as const,
  ...more,
});
const at = (iso: string, zone: string) => DateTime.fromISO(iso, { zone }).toMillis();
const between = (schedule: ReturnType<typeof rules>, zone: string, from: string, to: string) =>
  slotsBetween(schedule, zone, at(from, zone), at(to, zone), 1000);

describe('nextSlot', () => {
  it('gives the next wall time of a daily schedule', () => {
    const slot = nextSlot(rules('0 4 * * *'), 'Asia/Shanghai', Date.parse('2026-11-30T20:00:00Z'));
    expect(slot).toEqual({
      localTime: '2026-12-02T04:00',
      occurrence: 1,
      nominal: '2026-12-01T20:00:00.000000Z',
    });
  });

  it('is strictly later than the moment asked for', () => {
    const on = Date.parse('2026-11-30T04:00:00Z');
    expect(nextSlot(rules('0 4 * * *'), 'UTC', on)?.localTime).toBe('2026-12-01T04:00');
    expect(nextSlot(rules('0 4 * * *'), 'UTC', on - 1)?.localTime).toBe('2026-11-30T04:00');
  });

  it('finds 29 February, and refuses 30 February', () => {
    expect(nextSlot(rules('0 0 29 2 *'), 'UTC', Date.parse('2026-01-01T00:00:00Z'))?.localTime).toBe(
      '2028-02-29T00:00',
    );
    expect(() => nextSlot(rules('0 0 30 2 *'), 'UTC', 0)).toThrow(/day of month/);
  });

  it('takes either day field when both are restricted, as cron does', () => {
    const slots = between(rules('0 0 13 * 5'), 'UTC', '2026-11-10T00:00', '2026-11-20T12:00');
    expect(slots.map((slot) => slot.localTime)).toEqual(['2026-11-13T00:00', '2026-11-20T00:00']);
    const dated = between(rules('0 0 15 * 1'), 'UTC', '2026-11-10T00:00', '2026-11-17T12:00');
    expect(dated.map((slot) => slot.localTime)).toEqual(['2026-11-15T00:00', '2026-11-16T00:00']);
  });
});

describe('clock changes', () => {
  // The clocks of these zones skip the local time in question; cron-parser drops the run of that day.
  it.each([
    [
      'Africa/Cairo',
      '0 0 * * *',
      '2026-04-23T12:00',
      '2026-04-25T12:00',
      ['2026-04-24T00:00', '2026-04-25T00:00'],
    ],
    [
      'America/Havana',
      '0 0 * * *',
      '2026-03-07T12:00',
      '2026-03-09T12:00',
      ['2026-03-08T00:00', '2026-03-09T00:00'],
    ],
    [
      'Australia/Lord_Howe',
      '15 2 * * *',
      '2026-10-03T12:00',
      '2026-10-05T12:00',
      ['2026-10-04T02:15', '2026-10-05T02:15'],
    ],
    [
      'America/New_York',
      '30 2 * * *',
      '2026-03-07T12:00',
      '2026-03-09T12:00',
      ['2026-03-08T02:30', '2026-03-09T02:30'],
    ],
    [
      'Europe/Berlin',
      '30 2 * * *',
      '2026-03-28T12:00',
      '2026-03-30T12:00',
      ['2026-03-29T02:30', '2026-03-30T02:30'],
    ],
  ])('%s: %s runs every day, after the gap on the day that has one', (zone, cron, from, to, expected) => {
    const slots = between(rules(cron), zone, from, to);
    expect(slots.map((slot) => slot.localTime)).toEqual(expected);
    expect(between(rules(cron, { gap: 'skip' }), zone, from, to).map((slot) => slot.localTime)).toEqual(
      expected.slice(1),
    );
  });

  it('runs at the first instant after the gap', () => {
    const [slot] = between(rules('30 2 * * *'), 'America/New_York', '2026-03-08T00:00', '2026-03-08T12:00');
    expect(slot?.nominal).toBe('2026-03-08T07:00:00.000000Z');
  });

  it('runs once, twice or on the second pass of a local time that exists twice', () => {
    const day = (overlap: 'first' | 'both' | 'last') =>
      between(
        rules('30 1 * * *', { overlap }),
        'America/New_York',
        '2026-11-01T00:00',
        '2026-11-01T23:00',
      ).map(({ occurrence, nominal }) => [occurrence, nominal]);
    const first = [1, '2026-11-01T05:30:00.000000Z'];
    const second = [2, '2026-11-01T06:30:00.000000Z'];
    expect(day('first')).toEqual([first]);
    expect(day('last')).toEqual([second]);
    expect(day('both')).toEqual([first, second]);
  });

  it('does not run a daily schedule twice when it is asked from within the second pass', () => {
    const within = Date.parse('2026-11-01T06:10:00Z');
    expect(nextSlot(rules('30 1 * * *'), 'America/New_York', within)?.localTime).toBe('2026-11-02T01:30');
  });

  it('follows real time below a day: every 15 minutes never pauses and never doubles', () => {
    const zone = 'America/New_York';
    const spring = between(rules('*/15 * * * *'), zone, '2026-03-08T00:00', '2026-03-08T06:00');
    const autumn = between(rules('*/15 * * * *'), zone, '2026-11-01T00:00', '2026-11-01T06:00');
    for (const slots of [spring, autumn]) {
      const gaps = slots
        .slice(1)
        .map((slot, index) => Date.parse(slot.nominal) - Date.parse(slots[index]?.nominal ?? ''));
      expect(new Set(gaps)).toEqual(new Set([900_000]));
    }
    expect(spring).toHaveLength(20);
    expect(autumn).toHaveLength(28);
    expect(new Set(autumn.map((slot) => `${slot.localTime} ${slot.occurrence}`)).size).toBe(28);
  });
});
