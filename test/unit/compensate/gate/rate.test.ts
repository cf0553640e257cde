import { describe, expect, it } from 'vitest';
import {
  type BreakerPolicy,
  effectiveRate,
  type RateEvent,
  type RateState,
  rateStep,
  START_RATE,
} from '../../../../src/compensate/gate/rate.ts';
import { type Answered, dice, playTarget } from '../../../support/target-simulation.ts';

const POLICY: BreakerPolicy = { consecutive: 10, ratio: 0.3, minimum: 20, open: 30_000, slow: 4_000 };
const NOW = 1_764_525_451_123;
const OK: RateEvent = { type: 'ok' };
const DOWN: RateEvent = { type: 'target-failure', retryAfterMs: null };

function played(events: readonly RateEvent[], options: { everyMs?: number; ceiling?: number | null } = {}) {
  const { everyMs = 100, ceiling = 600 } = options;
  let at = NOW;
  let state: RateState = START_RATE;
  for (const event of events) {
    state = rateStep(state, event, POLICY, at, { ceiling });
    at += everyMs;
  }
  return { state, at };
}
const times = (count: number, event: RateEvent) => Array.from({ length: count }, () => event);

describe('effectiveRate', () => {
  it('is the least of ceiling, override and what the target bears', () => {
    expect(effectiveRate(START_RATE, 600, null, NOW)).toEqual({ limit: 600, reason: 'ceiling' });
    expect(effectiveRate(START_RATE, 600, 50, NOW)).toEqual({ limit: 50, reason: 'override' });
    expect(effectiveRate(START_RATE, 600, 5000, NOW)).toEqual({ limit: 600, reason: 'ceiling' });
    expect(effectiveRate(START_RATE, null, null, NOW)).toEqual({ limit: null, reason: 'ceiling' });
    expect(effectiveRate(START_RATE, 600, 0, NOW)).toEqual({ limit: 0, reason: 'override' });
    const halved = { ...START_RATE, factor: 0.5 };
    expect(effectiveRate(halved, 600, null, NOW)).toEqual({ limit: 300, reason: 'adaptive' });
    expect(effectiveRate(halved, 600, 50, NOW)).toEqual({ limit: 25, reason: 'adaptive' });
    expect(effectiveRate({ ...START_RATE, factor: 0.01 }, 10, null, NOW).limit).toBe(1);
  });
});

describe('rateStep', () => {
  it('opens at 10 target failures in a row, and an answer about a record breaks the row', () => {
    expect(played(times(9, DOWN)).state.breaker.kind).toBe('closed');
    expect(played(times(10, DOWN)).state.breaker.kind).toBe('open');
    const broken = [...times(9, DOWN), { type: 'record-failure' } as const, ...times(9, DOWN)];
    expect(played(broken).state.breaker.kind).toBe('closed');
  });

  it('opens at 30 % of at least 20 in 60 s', () => {
    const mixed = (count: number) => Array.from({ length: count }, (_, i) => (i % 3 === 0 ? DOWN : OK));
    expect(played(mixed(19)).state.breaker.kind).toBe('closed');
    expect(played(mixed(22)).state.breaker.kind).toBe('open');
  });

  it('lets probes through after `open`; three good ones close it to a ramp, one bad one opens it again', () => {
    const { state, at } = played(times(10, DOWN));
    expect(effectiveRate(state, 600, null, at)).toEqual({ limit: 0, reason: 'breaker-open' });
    const later = at + POLICY.open;
    expect(effectiveRate(state, 600, null, later)).toEqual({ limit: 6, reason: 'probing' });
    expect(effectiveRate(state, 3, null, later).limit).toBe(3);
    const probe = (from: RateState, event: RateEvent) =>
      rateStep(from, event, POLICY, later, { ceiling: 600 });
    const two = probe(probe(state, OK), { type: 'record-failure' });
    expect(two.breaker).toEqual({ kind: 'half-open', good: 2 });
    expect(effectiveRate(probe(two, OK), 600, null, later)).toEqual({ limit: 30, reason: 'adaptive' });
    expect(probe(two, DOWN).breaker).toEqual({ kind: 'open', untilMs: later + POLICY.open });
    expect(probe(two, { type: 'slow' }).breaker.kind).toBe('open');
  });

  it('halves at once on a 429, at most once in 10 s', () => {
    const throttled: RateEvent = { type: 'throttled', retryAfterMs: null };
    expect(played([throttled, throttled, throttled]).state.factor).toBe(0.5);
    expect(played([throttled, throttled], { everyMs: 10_000 }).state.factor).toBe(0.25);
  });

  it('halves when 20 % of the recent outcomes were slow, and does not open for them', () => {
    const slow = Array.from({ length: 100 }, (_, i): RateEvent => (i % 4 === 0 ? { type: 'slow' } : OK));
    expect(played(slow).state.factor).toBeLessThan(0.55);
    expect(played(times(300, { type: 'slow' })).state.breaker.kind).toBe('closed');
  });

  it('gives back 2 % of the watermark in each second with a good answer', () => {
    const { state, at } = played([{ type: 'throttled', retryAfterMs: null }]);
    let grown = state;
    for (let second = 1; second <= 24; second++)
      for (let i = 0; i < 5; i++)
        grown = rateStep(grown, OK, POLICY, at + second * 1000 + i * 100, { ceiling: 600 });
    expect(grown.factor).toBeCloseTo(0.98);
    expect(rateStep(grown, OK, POLICY, at + 25_000, { ceiling: 600 }).factor).toBe(1);
  });

  it('holds the whole target for Retry-After, the longest one counting', () => {
    const { state } = played([
      { type: 'throttled', retryAfterMs: 60_000 },
      { type: 'target-failure', retryAfterMs: 5_000 },
      OK,
    ]);
    expect(effectiveRate(state, 600, null, NOW + 59_999)).toEqual({ limit: 0, reason: 'retry-after' });
    expect(effectiveRate(state, 600, null, NOW + 60_000).limit).toBe(300);
  });

  it('starts from the measured rate where there is no watermark', () => {
    const { state, at } = played([...times(100, OK), { type: 'throttled', retryAfterMs: null }], {
      ceiling: null,
    });
    const { limit, reason } = effectiveRate(state, null, null, at);
    expect(reason).toBe('adaptive');
    // 10 a second were sent; the running second is not full yet.
    expect(limit).toBeGreaterThan(250);
    expect(limit).toBeLessThanOrEqual(300);
  });

  it('is plain JSON of less than 2 KB', () => {
    const { state } = played(times(5000, OK));
    expect(JSON.parse(JSON.stringify(state))).toEqual(state);
    expect(JSON.stringify(state).length).toBeLessThan(2000);
  });

  it('does nothing on a tick but see what time has changed', () => {
    const { state, at } = played(times(10, DOWN));
    const ticked = rateStep(state, { type: 'tick' }, POLICY, at + POLICY.open, { ceiling: 600 });
    expect(ticked.breaker).toEqual({ kind: 'half-open', good: 0 });
    expect(ticked.buckets).toBe(state.buckets);
  });
});

describe('a target over time', () => {
  const MINUTE = 60_000;

  it('keeps at least 95 % of 600 a minute over 10 minutes in which 10 % fail, without opening', () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const random = dice(seed);
      const play = playTarget({
        ceiling: 600,
        policy: POLICY,
        forMs: 10 * MINUTE,
        answer: () => ({ event: random() < 0.1 ? DOWN : OK, latencyMs: 100 }),
      });
      expect(play.opened).toBe(0);
      expect(play.sends.length / 6000).toBeGreaterThanOrEqual(0.95);
      expect(play.sends.length).toBeLessThanOrEqual(6000);
    }
  });

  it('asks little during an outage of three hours, and ramps up after it', () => {
    const outage = 180 * MINUTE;
    const play = playTarget({
      ceiling: 600,
      policy: POLICY,
      forMs: outage + 10 * MINUTE,
      answer: (at) => ({ event: at < outage ? DOWN : OK, latencyMs: 50 }),
    });
    const during = play.sends.filter((at) => at < outage).length;
    expect(during).toBeLessThanOrEqual(10 + 10 + outage / POLICY.open);
    const since = (from: number, to: number) =>
      play.sends.filter((at) => at >= outage + from && at < outage + to).length;
    const closedAt = play.closedAt.at(-1) ?? 0;
    expect(closedAt).toBeGreaterThan(outage);
    expect(closedAt - outage).toBeLessThan(2 * MINUTE);
    const first = play.sends.filter((at) => at >= closedAt && at < closedAt + 10_000).length;
    expect(first).toBeLessThan(30);
    expect(since(9 * MINUTE, 10 * MINUTE)).toBeGreaterThanOrEqual(595);
  });

  it('stays away for Retry-After and comes back at half the rate', () => {
    let throttled = false;
    const play = playTarget({
      ceiling: 600,
      policy: POLICY,
      forMs: 5 * MINUTE,
      answer: (at): Answered => {
        if (at < MINUTE || throttled) return { event: OK, latencyMs: 20 };
        throttled = true;
        return { event: { type: 'throttled', retryAfterMs: 90_000 }, latencyMs: 20 };
      },
    });
    const count = (from: number, to: number) => play.sends.filter((at) => at >= from && at < to).length;
    expect(count(MINUTE + 1000, 2 * MINUTE + 30_000)).toBe(0);
    expect(count(2 * MINUTE + 31_000, 2 * MINUTE + 32_000)).toBeLessThanOrEqual(6);
    expect(play.opened).toBe(0);
  });

  it('finds the pace of a target that gets slow above 200 a minute', () => {
    let free = 0;
    const play = playTarget({
      ceiling: 600,
      policy: POLICY,
      forMs: 20 * MINUTE,
      answer: (at): Answered => {
        // One server that takes 300 ms for each call, in order.
        free = Math.max(free, at) + 300;
        const latencyMs = free - at;
        return { event: latencyMs > POLICY.slow ? { type: 'slow' } : OK, latencyMs };
      },
    });
    const lastTen = play.sends.filter((at) => at >= 10 * MINUTE).length / 10;
    expect(lastTen).toBeGreaterThan(120);
    expect(lastTen).toBeLessThan(260);
    expect(play.opened).toBe(0);
  });
});
