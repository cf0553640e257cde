import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type GateTiming,
  isLost,
  MINUTE,
  mayStart,
  recoverState,
  requestSlot,
  type SlotState,
  spacing,
} from '../../src/compensate/gate/watermark.ts';
import { type Step, simulate, violation } from '../support/gate-simulation.ts';

/** A minute scaled down, so that a few hundred steps fill many windows. */
const SMALL: GateTiming = { windowMs: 1000, validMs: 40, transitMs: 40, horizonMs: 80 };

const often = <T>(usual: T, arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary });

const ask: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant('ask' as const),
  gapMs: fc.integer({ min: 0, max: 40 }),
  upMs: often(0, fc.integer({ min: 0, max: 60 })),
  downMs: often(0, fc.integer({ min: 0, max: 60 })),
  lateness: fc.constantFrom(0, 0, 0.5, 1, 1),
  transit: fc.constantFrom(0, 0, 0.5, 1, 1),
  fate: often<'starts' | 'dropped' | 'lost' | 'frozen'>(
    'starts',
    fc.constantFrom('dropped', 'lost', 'frozen'),
  ),
  skewMs: fc.constantFrom(0, 5_000, -700),
});
const gapMs = fc.integer({ min: 0, max: 400 });
const anyLimit = fc.oneof(fc.integer({ min: 0, max: 30 }), fc.constant(null));
const disturbance: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('limit' as const), gapMs, limit: anyLimit }),
  fc.record({ kind: fc.constant('lose' as const), gapMs }),
  fc.record({ kind: fc.constant('jump' as const), gapMs, byMs: fc.integer({ min: -5000, max: 5000 }) }),
);
const calm = fc.array(ask, { minLength: 50, maxLength: 300 });
const rough = fc.array(fc.oneof({ weight: 25, arbitrary: ask }, { weight: 1, arbitrary: disturbance }), {
  minLength: 50,
  maxLength: 300,
});

/** A backlog that asks all the time; at first calls start and travel as late as they may, then at once. */
function worstCase(): Step[] {
  return Array.from({ length: 4000 }, (_, index) => ({
    kind: 'ask',
    gapMs: 1,
    upMs: 0,
    downMs: 0,
    lateness: index < 1500 ? 1 : 0,
    transit: index < 1500 ? 1 : 0,
    fate: 'starts',
    skewMs: 0,
  }));
}

describe('the watermark', () => {
  it('is never exceeded in any half-open window, whatever workers and network do', () => {
    fc.assert(
      fc.property(calm, fc.integer({ min: 1, max: 30 }), (steps, limit) => {
        expect(violation(simulate(steps, limit, SMALL), SMALL)).toBeNull();
      }),
      { numRuns: 150 },
    );
  });

  it('holds over changes of N, lost state and jumps of the store’s clock', () => {
    fc.assert(
      fc.property(rough, anyLimit, (steps, limit) => {
        expect(violation(simulate(steps, limit, SMALL), SMALL)).toBeNull();
      }),
      { numRuns: 150 },
    );
  });

  it('holds in the worst case, with N calls really in one window', () => {
    for (const limit of [1, 5, 7, 30]) {
      const trace = simulate(worstCase(), limit, SMALL);
      expect(violation(trace, SMALL)).toBeNull();
      expect(trace.starts.length).toBeGreaterThanOrEqual(limit * 2);
    }
  });

  it('would be exceeded if slots were one Nth of the window apart, without V (so the check can fail)', () => {
    const withoutV = { ...SMALL, validMs: 0, transitMs: 0 };
    expect(violation(simulate(worstCase(), 5, withoutV, SMALL), SMALL)).toContain('6 starts');
  });

  it('would be exceeded on arrival if nothing were allowed for the way (so the check can fail)', () => {
    const withoutTransit = { ...SMALL, transitMs: 0 };
    const trace = simulate(worstCase(), 5, withoutTransit, SMALL);
    expect(violation({ ...trace, arrivals: [] }, SMALL)).toBeNull();
    expect(violation(trace, SMALL)).toContain('6 arrivals');
  });

  it('would be exceeded if a call could start later than its validity (so the check can fail)', () => {
    const careless = { ...SMALL, validMs: SMALL.validMs * 3 };
    expect(violation(simulate(worstCase(), 5, SMALL, careless), SMALL)).not.toBeNull();
  });

  it('loses to a forward jump of the clock no more than was granted ahead and one call', () => {
    const { windowMs, horizonMs } = SMALL;
    const steps: Step[] = [...worstCase()];
    steps.splice(2000, 0, { kind: 'jump', gapMs: 0, byMs: 500 });
    const trace = simulate(steps, 30, SMALL);
    const most = Math.max(
      ...trace.starts.map((from) => trace.starts.filter((at) => at >= from && at < from + windowMs).length),
    );
    expect(most).toBeGreaterThan(30);
    expect(most).toBeLessThanOrEqual(31 + Math.ceil((30 * horizonMs) / windowMs));
  });

  it('lets a backlog use at least 97 % of N', () => {
    for (const limit of [10, 100, 600, 6000]) {
      let now = 1_764_525_451_123.25;
      let state: SlotState | null = null;
      let granted = 0;
      const end = now + 10 * 60_000;
      while (now < end) {
        const reply = requestSlot(state, { nowMs: now, limit, timing: MINUTE });
        state = reply.state;
        if (reply.answer.kind === 'granted') granted += 1;
        else now += Math.ceil(reply.answer.delayMs);
      }
      expect(granted / (limit * 10)).toBeGreaterThanOrEqual(0.97);
      expect(granted).toBeLessThanOrEqual(limit * 10);
    }
  });
});

describe('requestSlot', () => {
  const at = (nowMs: number, limit: number | null, state: SlotState | null) =>
    requestSlot(state, { nowMs, limit, timing: MINUTE });

  it('spaces slots so that N of them span the window, the validity and the way', () => {
    expect(spacing(100, MINUTE)).toBe(605);
    expect(spacing(1, MINUTE)).toBe(60_500);
    expect(spacing(null, MINUTE)).toBe(0);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000 }), (n) => {
        expect(n * spacing(n, MINUTE)).toBeGreaterThanOrEqual(60_500);
      }),
    );
  });

  it('consumes nothing when the slot is further ahead than H, and grants it when asked again after the delay', () => {
    const state = { lastSlotMs: 100_000 };
    const first = at(100_000, 10, state);
    expect(first).toEqual({ answer: { kind: 'wait', delayMs: 5550 }, state });
    expect(at(105_550, 10, first.state)).toEqual({
      answer: { kind: 'granted', delayMs: 500, validMs: 250 },
      state: { lastSlotMs: 106_050 },
    });
  });

  it('lets nothing through at N = 0, and everything at once without a limit', () => {
    expect(at(100_000, 0, { lastSlotMs: 0 }).answer.kind).toBe('open');
    const free = at(100_000, null, { lastSlotMs: 100_000 });
    expect(free.answer).toEqual({ kind: 'granted', delayMs: 0, validMs: 250 });
  });

  it('applies a new N to the next slot, in both directions', () => {
    const state = { lastSlotMs: 100_000 };
    expect(at(100_000, 600, state).answer).toMatchObject({ kind: 'granted', delayMs: 100.833984375 });
    expect(at(100_000, 1, state).answer).toEqual({ kind: 'wait', delayMs: 60_000 });
  });

  it('begins anew at now + H + V + T when the state is lost, and only once', () => {
    const first = at(100_000, 100, null);
    expect(first.answer).toEqual({ kind: 'wait', delayMs: 250 + 605 });
    const again = at(100_001, 100, first.state);
    expect(again.state).toBe(first.state);
    expect(at(100_000 + 855, 100, first.state).answer).toMatchObject({ kind: 'granted', delayMs: 500 });
  });

  it('takes a slot that no grant can have set for lost state', () => {
    expect(isLost(recoverState(100_000, MINUTE), 100_000, MINUTE)).toBe(false);
    expect(isLost({ lastSlotMs: 100_751 }, 100_000, MINUTE)).toBe(true);
    expect(at(100_000, 100, { lastSlotMs: 9e12 }).state).toEqual({ lastSlotMs: 100_750 });
  });
});

describe('mayStart', () => {
  const slot = { m0: 1000, m1: 1040, delayMs: 300, validMs: 250 };

  it('allows a call from m1 + d to m0 + d + V, both included', () => {
    expect(mayStart(slot, 1339.9)).toBe('early');
    expect(mayStart(slot, 1340)).toBe('now');
    expect(mayStart(slot, 1550)).toBe('now');
    expect(mayStart(slot, 1550.1)).toBe('late');
  });

  it('drops a slot at once when asking took longer than its validity', () => {
    expect(mayStart({ ...slot, m1: 1251 }, 1300)).toBe('late');
  });
});
