import { addMillis, type Instant, instantFromMillis } from '../../src/reconcile/instant.ts';

export interface ManualClock {
  now(): Instant;
  /** The same moment in epoch milliseconds. */
  millis(): number;
  advance(ms: number): Instant;
}

/** A clock that stands still until a test moves it. Starts at 2026-01-01 unless told otherwise. */
export function manualClock(start: Instant = instantFromMillis(Date.UTC(2026, 0, 1))): ManualClock {
  const origin = Date.parse(start);
  let passed = 0;
  return {
    now: () => addMillis(start, passed),
    millis: () => origin + passed,
    advance(ms) {
      passed += ms;
      return addMillis(start, passed);
    },
  };
}
