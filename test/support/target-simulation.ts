import {
  type BreakerPolicy,
  effectiveRate,
  type RateEvent,
  type RateState,
  rateStep,
  START_RATE,
} from '../../src/compensate/gate/rate.ts';

export interface Answered {
  readonly event: RateEvent;
  readonly latencyMs: number;
}

export interface Play {
  /** Times of the sends, in ms from the start. */
  readonly sends: readonly number[];
  /** How often the breaker opened from closed. */
  readonly opened: number;
  readonly closedAt: readonly number[];
}

/** Numbers in [0, 1) that are the same in every run (mulberry32). */
export function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A backlog that always has work, against a target that answers as told, at the pace `effectiveRate` allows. */
export function playTarget(scene: {
  ceiling: number;
  policy: BreakerPolicy;
  forMs: number;
  answer: (at: number) => Answered;
}): Play {
  let state: RateState = START_RATE;
  let opened = 0;
  const sends: number[] = [];
  const closedAt: number[] = [];
  const inFlight: { at: number; event: RateEvent }[] = [];
  const settle = (until: number) => {
    inFlight.sort((a, b) => a.at - b.at);
    while (inFlight[0] !== undefined && inFlight[0].at <= until) {
      const { at, event } = inFlight[0];
      inFlight.shift();
      const next = rateStep(state, event, scene.policy, at, { ceiling: scene.ceiling });
      if (state.breaker.kind === 'closed' && next.breaker.kind === 'open') opened += 1;
      if (state.breaker.kind !== 'closed' && next.breaker.kind === 'closed') closedAt.push(at);
      state = next;
    }
  };
  for (let at = 0, last = Number.NEGATIVE_INFINITY; at < scene.forMs; at += 10) {
    settle(at);
    const { limit } = effectiveRate(state, scene.ceiling, null, at);
    if (limit === null || limit === 0 || at - last < 60_000 / limit) continue;
    last = at;
    sends.push(at);
    const { event, latencyMs } = scene.answer(at);
    inFlight.push({ at: at + latencyMs, event });
  }
  return { sends, opened, closedAt };
}
