import { describe, expect, it } from 'vitest';
import { type DecisionInput, decide } from '../../../../src/compensate/retry/decide.ts';

const HOUR = 3_600_000;

function input(
  outcome: Partial<DecisionInput['outcome']>,
  rest: Partial<Omit<DecisionInput, 'outcome'>> = {},
): DecisionInput {
  return {
    outcome: { class: 'retryable', code: 'http-500', retryAfterMs: null, durationMs: 50, ...outcome },
    attempts: 1,
    quickTargetFailures: 0,
    elapsedMs: 1000,
    policy: {
      attempts: 3,
      wait: { kind: 'exponential', base: 500, factor: 2, step: 500, cap: 8000, jitter: 0 },
    },
    target: { maxSlowMs: 30_000, dedupes: false },
    random: () => 0.5,
    ...rest,
  };
}

const down = (quickTargetFailures: number, rest: Partial<Omit<DecisionInput, 'outcome'>> = {}) =>
  decide(input({ class: 'target-down', code: 'http-503' }, { attempts: 0, quickTargetFailures, ...rest }));

describe('decide', () => {
  it('lets looks settle what was accepted, ambiguous or in conflict', () => {
    expect(decide(input({ class: 'accepted' }))).toEqual({ event: 'accepted' });
    expect(decide(input({ class: 'pending' }))).toEqual({ event: 'accepted' });
    expect(decide(input({ class: 'unknown' }))).toEqual({ event: 'ambiguous' });
    expect(decide(input({ class: 'conflict', code: 'http-409' }))).toEqual({ event: 'ambiguous' });
  });

  it('hands a refused record to a person at once', () => {
    expect(decide(input({ class: 'fatal', code: 'http-422' }))).toMatchObject({
      event: 'escalate',
      reason: 'refused',
    });
  });

  it('retries until the counted attempts are spent, and only then calls a person', () => {
    expect(decide(input({}, { attempts: 1 }))).toEqual({ event: 'retry', waitMs: 500 });
    expect(decide(input({}, { attempts: 2 }))).toEqual({ event: 'retry', waitMs: 1000 });
    expect(decide(input({}, { attempts: 3 }))).toMatchObject({ event: 'escalate', reason: 'exhausted' });
  });

  it('defers a slow send by the cap while attempts are left', () => {
    expect(decide(input({ durationMs: 30_001 }, { attempts: 2 }))).toEqual({ event: 'defer', waitMs: 8000 });
    expect(decide(input({ durationMs: 30_001 }, { attempts: 3 }))).toMatchObject({ reason: 'exhausted' });
  });

  it('retries a target that is down quickly, then defers without counting, however long it stays down', () => {
    expect(down(1)).toEqual({ event: 'retry', waitMs: 500 });
    expect(down(2)).toEqual({ event: 'retry', waitMs: 1000 });
    expect(down(3)).toEqual({ event: 'defer', waitMs: 8000 });
    expect(down(500, { elapsedMs: 48 * HOUR })).toEqual({ event: 'defer', waitMs: 8000 });
  });

  it('gives a 429 one quick retry, not before 5 s', () => {
    const throttled = (failures: number, retryAfterMs: number | null) =>
      decide(
        input(
          { class: 'target-down', code: 'http-429', retryAfterMs },
          { attempts: 0, quickTargetFailures: failures },
        ),
      );
    expect(throttled(1, null)).toEqual({ event: 'retry', waitMs: 5000 });
    expect(throttled(1, 7000)).toEqual({ event: 'retry', waitMs: 7000 });
    expect(throttled(2, null)).toEqual({ event: 'defer', waitMs: 8000 });
    expect(throttled(1, 60_000)).toEqual({ event: 'defer', waitMs: 60_000 });
  });

  it('obeys Retry-After on a retryable answer', () => {
    expect(decide(input({ retryAfterMs: 3000 }))).toEqual({ event: 'retry', waitMs: 3000 });
  });

  it('stops by elapsed time: a failing record is exhausted, a target that is down is deferred', () => {
    const policy = { ...input({}).policy, elapsed: 1200 };
    expect(decide(input({}, { policy }))).toMatchObject({ event: 'escalate', reason: 'exhausted' });
    expect(down(1, { policy })).toMatchObject({ event: 'defer' });
  });

  it('never calls a person for a target that is down, whatever else is true (rules 6.7, 6.12)', () => {
    for (const quick of [1, 2, 3, 1000])
      for (const attempts of [0, 3, 99])
        for (const elapsedMs of [0, 1e9])
          expect(down(quick, { attempts, elapsedMs }).event).not.toBe('escalate');
  });
});
