import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describePolicy, nextTry } from '../../../../src/compensate/retry/policy.ts';
import { stopReason } from '../../../../src/compensate/retry/stop.ts';
import { waitBefore } from '../../../../src/compensate/retry/wait.ts';
import type { WaitPolicy } from '../../../../src/config/schema.ts';

const policy = (part: Partial<WaitPolicy>): WaitPolicy => ({
  kind: 'exponential',
  base: 500,
  factor: 2,
  step: 500,
  cap: 8000,
  jitter: 0,
  ...part,
});
const waits = (count: number, part: Partial<WaitPolicy>) =>
  Array.from({ length: count }, (_, index) => waitBefore(index + 1, policy(part), () => 0.5));

describe('waitBefore', () => {
  it('follows the golden sequences of an exponential wait', () => {
    expect(waits(4, { base: 2, cap: 10 })).toEqual([2, 4, 8, 10]);
    expect(waits(5, { base: 1, cap: 10 })).toEqual([1, 2, 4, 8, 10]);
    expect(waits(5, { base: 0.5, cap: 8 })).toEqual([0.5, 1, 2, 4, 8]);
  });

  it('is the same each time, grows by a step, or lies between base and cap', () => {
    expect(waits(3, { kind: 'fixed' })).toEqual([500, 500, 500]);
    expect(waits(4, { kind: 'incremental', step: 250, cap: 1100 })).toEqual([500, 750, 1000, 1100]);
    expect(waits(2, { kind: 'random', base: 100, cap: 200 })).toEqual([150, 150]);
  });

  it('spreads waits at the cap below it instead of piling them up on it', () => {
    const atCap = (random: number) => waitBefore(20, policy({ jitter: 0.2 }), () => random);
    expect(atCap(0)).toBeCloseTo(6400);
    expect(atCap(0.5)).toBeCloseTo(7200);
    expect(atCap(0.999)).toBeLessThanOrEqual(8000);
  });

  it('is a finite number within [0, cap] at any attempt, 2000 included', () => {
    const kinds = fc.constantFrom('fixed', 'incremental', 'exponential', 'random') as fc.Arbitrary<
      WaitPolicy['kind']
    >;
    fc.assert(
      fc.property(
        kinds,
        fc.integer({ min: 1, max: 5000 }),
        fc.integer({ min: 0, max: 100_000 }),
        fc.double({ min: 1, max: 1000, noNaN: true }),
        fc.integer({ min: 0, max: 100_000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 0.9999999, noNaN: true }),
        (kind, attempt, base, factor, cap, jitter, random) => {
          const wait = waitBefore(attempt, policy({ kind, base, factor, cap, jitter }), () => random);
          expect(Number.isFinite(wait) && wait >= 0 && wait <= cap).toBe(true);
        },
      ),
    );
    expect(waitBefore(2000, policy({}), () => 0.5)).toBe(8000);
    expect(waitBefore(2000, policy({ base: 0 }), () => 0.5)).toBe(0);
  });
});

describe('stop and policy', () => {
  it('counts the first attempt', () => {
    expect(stopReason({ attempts: 2, elapsedMs: 0 }, 0, { attempts: 3 })).toBeNull();
    expect(stopReason({ attempts: 3, elapsedMs: 0 }, 0, { attempts: 3 })).toBe('attempts');
  });

  it('judges the time at which the next attempt would start', () => {
    expect(stopReason({ attempts: 1, elapsedMs: 900 }, 100, { attempts: 3, elapsed: 1000 })).toBeNull();
    expect(stopReason({ attempts: 1, elapsedMs: 900 }, 101, { attempts: 3, elapsed: 1000 })).toBe('elapsed');
  });

  it('takes the longer of its own wait and the one it was told', () => {
    const retry = { attempts: 3, wait: policy({}) };
    expect(nextTry({ attempts: 1, elapsedMs: 0 }, retry, () => 0.5)).toEqual({ next: 'retry', waitMs: 500 });
    expect(nextTry({ attempts: 1, elapsedMs: 0 }, retry, () => 0.5, 5000)).toEqual({
      next: 'retry',
      waitMs: 5000,
    });
  });

  it('describes itself', () => {
    expect(describePolicy({ attempts: 3, wait: policy({ jitter: 0.2 }) })).toBe(
      '3 attempts; waits 500ms, 1s ±20 %, at most 8s',
    );
    expect(describePolicy({ attempts: 1, elapsed: 60_000, wait: policy({}) })).toBe(
      '1 attempt; none later than 1m after the first',
    );
  });
});
