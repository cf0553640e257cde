import { describe, expect, it } from 'vitest';
import { parseLocal } from '../../../src/jobs/adhoc-window.ts';
import { nextSlot, type SlotTime } from '../../../src/jobs/cron.ts';
import { decideSlots } from '../../../src/jobs/schedule.ts';

function slots(count: number): SlotTime[] {
  const found: SlotTime[] = [];
  let after = Date.parse('2026-11-30T00:00:00Z');
  while (found.length < count) {
    const slot = nextSlot({ cron: '0 * * * *', gap: 'run-after', overlap: 'first' }, 'UTC', after);
    if (!slot) throw new Error('no slot');
    found.push(slot);
    after = Date.parse(slot.nominal);
  }
  return found;
}

const outcomes = (count: number, missed: 'collapse' | 'each' | 'skip', busy = false) =>
  decideSlots(slots(count), missed, busy).map(({ outcome }) => outcome);

describe('decideSlots', () => {
  it('runs the only slot that is due, whatever the policy', () => {
    for (const missed of ['collapse', 'each', 'skip'] as const) expect(outcomes(1, missed)).toEqual(['run']);
  });

  it('runs one late run for several missed slots, each of them, or only the latest', () => {
    expect(outcomes(3, 'collapse')).toEqual(['collapsed', 'collapsed', 'run']);
    expect(outcomes(3, 'each')).toEqual(['run', 'run', 'run']);
    expect(outcomes(3, 'skip')).toEqual(['skipped', 'skipped', 'run']);
  });

  it('records every slot as skipped while a run is under way and may not overlap', () => {
    expect(outcomes(2, 'each', true)).toEqual(['skipped', 'skipped']);
  });
});

describe('parseLocal', () => {
  it('takes a time with an offset as it is, and a local time in the zone', () => {
    expect(parseLocal('2026-11-30T02:00+08:00', 'Europe/Berlin')).toBe('2026-11-29T18:00:00.000000Z');
    expect(parseLocal('2026-11-30T02:00', 'Asia/Shanghai')).toBe('2026-11-29T18:00:00.000000Z');
    expect(parseLocal('2026-11-30', 'Asia/Shanghai')).toBe('2026-11-29T16:00:00.000000Z');
    expect(parseLocal('2026-11-30 02:00:30', 'UTC')).toBe('2026-11-30T02:00:30.000000Z');
  });

  it('asks back for a local time that does not exist, and says what to write', () => {
    expect(() => parseLocal('2026-03-29T02:30', 'Europe/Berlin')).toThrow(/does not exist in Europe\/Berlin/);
  });

  it('asks back for a local time that exists twice, and offers both', () => {
    const ambiguous = () => parseLocal('2026-10-25T02:30', 'Europe/Berlin');
    expect(ambiguous).toThrow(/exists twice/);
    expect(ambiguous).toThrow(
      expect.objectContaining({ hint: expect.stringMatching(/\+02:00 or .*\+01:00/) }),
    );
  });

  it('refuses what is no time', () => {
    expect(() => parseLocal('yesterday-ish', 'UTC')).toThrow(/no time/);
  });
});
