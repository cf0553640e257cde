import { describe, expect, it } from 'vitest';
import {
  givenUpSince,
  type Outage,
  outageAfter,
  outageAfterHold,
} from '../../../../src/compensate/gate/outage.ts';

const HOUR = 3_600_000;
const LIMIT = 24 * HOUR;

/** Failures at these hours, with nothing good in between. */
function failing(...hours: readonly number[]): Outage | null {
  return hours.reduce<Outage | null>((outage, hour) => outageAfter(outage, 'failed', hour * HOUR), null);
}
const hours = (ms: number | null) => (ms === null ? null : ms / HOUR);

describe('the outage of a target (rule 6.12)', () => {
  it('begins with the first failure after a good answer and ends with the next good one', () => {
    expect(failing(3, 5)).toEqual({ sinceMs: 3 * HOUR, seenMs: 5 * HOUR, heldMs: 0 });
    expect(outageAfter(failing(3, 5), 'good', 6 * HOUR)).toBeNull();
    expect(outageAfter(null, 'good', 6 * HOUR)).toBeNull();
  });

  it('is proven by failures only: the time after the latest one says nothing', () => {
    expect(givenUpSince(failing(0, 23.9), null, LIMIT)).toBeNull();
    expect(givenUpSince(failing(0), null, LIMIT)).toBeNull();
    expect(hours(givenUpSince(failing(0, 24), null, LIMIT))).toBe(0);
  });

  it('gives up what waited that long during it, and not what was planned an hour ago', () => {
    expect(hours(givenUpSince(failing(0, 25), null, LIMIT))).toBe(1);
    expect(hours(givenUpSince(failing(0, 12, 40), null, LIMIT))).toBe(16);
  });

  it('does not count what a person held', () => {
    const held = outageAfterHold(failing(0, 2), 4 * HOUR, 14 * HOUR);
    expect(held).toMatchObject({ heldMs: 10 * HOUR });
    const at = (hour: number) => givenUpSince(outageAfter(held, 'failed', hour * HOUR), 14 * HOUR, LIMIT);
    expect(at(33.9)).toBeNull();
    // What waited all along is given up; what came during the outage waits on, since the hold was within its time.
    expect(hours(at(34))).toBe(0);
    expect(hours(at(40))).toBe(16);
  });

  it('counts a hold that began before the outage from the outage on', () => {
    // A call that was under way when the hold began fails at hour 5.
    expect(outageAfterHold(failing(5), 0, 20 * HOUR)).toMatchObject({ heldMs: 15 * HOUR });
  });

  it('begins anew after a hold of which nobody knows when it began', () => {
    expect(outageAfterHold(failing(0, 30), null, 40 * HOUR)).toBeNull();
    expect(outageAfterHold(null, 10, 40 * HOUR)).toBeNull();
  });
});
