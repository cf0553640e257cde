import {
  type GateTiming,
  mayStart,
  requestSlot,
  type SlotState,
} from '../../src/compensate/gate/watermark.ts';

/** What happens in a simulated store and its workers, `gapMs` after the step before it. */
export type Step =
  /**
   * A worker asks for a slot. `upMs` and `downMs` are the network's delays. `lateness` (0 to 1) says where within its
   * validity the call starts. `dropped`: it never starts; `lost`: the answer never arrives; `frozen`: the process
   * stops between its last check and the call, which then starts at any later time. `transit` (0 to 1) says how long
   * the call is on its way, as a share of what the timing allows for.
   */
  | {
      readonly kind: 'ask';
      readonly gapMs: number;
      readonly upMs: number;
      readonly downMs: number;
      readonly lateness: number;
      readonly transit: number;
      readonly fate: 'starts' | 'dropped' | 'lost' | 'frozen';
      readonly skewMs: number;
    }
  | { readonly kind: 'limit'; readonly gapMs: number; readonly limit: number | null }
  /** The row is gone, or comes from another server. */
  | { readonly kind: 'lose'; readonly gapMs: number }
  /** The store's clock jumps by this, forward or back. */
  | { readonly kind: 'jump'; readonly gapMs: number; readonly byMs: number };

export interface Trace {
  /** True times at which calls started, in order; without those of frozen workers, the one extra call each. */
  readonly starts: readonly number[];
  /** True times at which the same calls arrived at the target, in order. */
  readonly arrivals: readonly number[];
  /** [true time, N in force from then on]. */
  readonly limits: readonly (readonly [number, number | null])[];
  /** True times at which the store's clock jumped forward. */
  readonly forward: readonly number[];
}

/**
 * Plays the steps against the real arithmetic. Nothing here knows the spacing. `asks` is the timing the gate uses and
 * `workers` the one its workers believe in; they differ only to show that a wrong gate is caught.
 */
export function simulate(
  steps: readonly Step[],
  first: number | null,
  asks: GateTiming,
  workers: GateTiming = asks,
): Trace {
  let at = 1_000_000;
  const timed = steps.map((step) => {
    at += step.gapMs;
    return { step, at, arrival: step.kind === 'ask' ? at + step.upMs : at };
  });
  let state: SlotState | null = null;
  let limit = first;
  let jumped = 0;
  const starts: number[] = [];
  const arrivals: number[] = [];
  const forward: number[] = [];
  const limits: [number, number | null][] = [[0, first]];
  // The lock on the row puts the asks in the order of their arrival.
  for (const { step, at: askedAt, arrival } of timed.toSorted((a, b) => a.arrival - b.arrival)) {
    if (step.kind === 'limit') {
      limit = step.limit;
      limits.push([arrival, limit]);
    } else if (step.kind === 'lose') {
      state = null;
    } else if (step.kind === 'jump') {
      jumped += step.byMs;
      if (step.byMs > 0) forward.push(arrival);
    } else {
      const reply = requestSlot(state, { nowMs: arrival + jumped, limit, timing: asks });
      state = reply.state;
      if (reply.answer.kind !== 'granted' || step.fate !== 'starts') continue;
      const slot = {
        m0: askedAt + step.skewMs,
        m1: arrival + step.downMs + step.skewMs,
        delayMs: reply.answer.delayMs,
        validMs: workers.validMs,
      };
      const from = slot.m1 + slot.delayMs;
      const until = slot.m0 + slot.delayMs + slot.validMs;
      const monotonic = from + (until - from) * step.lateness;
      if (mayStart(slot, monotonic) !== 'now') continue;
      const start = monotonic - step.skewMs;
      starts.push(start);
      arrivals.push(start + step.transit * workers.transitMs);
    }
  }
  const inOrder = (times: number[]) => times.sort((a, b) => a - b);
  return { starts: inOrder(starts), arrivals: inOrder(arrivals), limits, forward };
}

/** The largest N in force at any time within [from, to); Infinity when that was unlimited. */
function largestLimit(trace: Trace, from: number, to: number): number {
  const values = trace.limits
    .filter(
      ([since], index) => since < to && (trace.limits[index + 1]?.[0] ?? Number.POSITIVE_INFINITY) > from,
    )
    .map(([, limit]) => limit ?? Number.POSITIVE_INFINITY);
  return Math.max(...values);
}

/**
 * The first window with more starts or more arrivals than allowed, as a sentence; null when there is none. Only
 * windows that begin with a call need to be looked at. A change of N is going on for `horizon + valid` after it, and
 * `transit` more where calls arrive (see watermark.ts). A forward jump of the clock may cost the calls that were
 * granted ahead, and one more.
 */
export function violation(trace: Trace, timing: GateTiming): string | null {
  return crowded(trace, 'starts', timing) ?? crowded(trace, 'arrivals', timing);
}

function crowded(trace: Trace, what: 'starts' | 'arrivals', timing: GateTiming): string | null {
  const { windowMs, validMs, transitMs, horizonMs } = timing;
  const times = trace[what];
  const reach = horizonMs + validMs + (what === 'arrivals' ? transitMs : 0);
  for (const [index, from] of times.entries()) {
    const to = from + windowMs;
    const count = times.slice(index).findIndex((time) => time >= to);
    const inWindow = count === -1 ? times.length - index : count;
    const allowed = largestLimit(trace, from - reach, to);
    const jumps = trace.forward.filter((jump) => jump >= from - reach && jump < to).length;
    const extra = jumps * (1 + Math.ceil((allowed * horizonMs) / (windowMs + validMs + transitMs)));
    if (inWindow > allowed + extra)
      return `${inWindow} ${what} in [${from}, ${to}), allowed ${allowed} and ${extra} for ${jumps} jumps`;
  }
  return null;
}
