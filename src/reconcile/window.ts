import { DateTime } from 'luxon';
import type { WindowPolicy } from '../config/schema.ts';
import { addMillis, earliest, type Instant, instantFromMillis, latest, millisOf } from './instant.ts';
import type { Window } from './record.ts';

export interface WindowInput {
  readonly policy: WindowPolicy;
  /** Up to here everything was read before; null before the first run. */
  readonly coverage: Instant | null;
  /** The source's own database clock (rule 5.8), never the worker's. */
  readonly sourceNow: Instant;
  /** Start of the oldest transaction that may still write records; null when there is none. */
  readonly oldestOpen: Instant | null;
  /** False where open transactions cannot be seen; then `maxTransactionAge` stands in for them. */
  readonly seesTransactions: boolean;
  /** IANA zone of the local day in `day: yesterday`. */
  readonly zone: string;
}

export interface ScheduledWindow {
  readonly window: Window;
  /** How far open transactions keep the upper bound behind where it would be without them. */
  readonly heldBackMs: number;
  /** True when a transaction is older than `maxHoldback` allows: what it writes may be missed. Alert. */
  readonly capped: boolean;
}

/**
 * The window of a scheduled run: at least the lookback, back to the coverage when that is older (never a hole after
 * downtime, however long), up to `settle` ago and not past a transaction that may still write. With
 * `day: yesterday` it is the previous local day, from the coverage on when that is older.
 */
export function scheduledWindow(input: WindowInput): ScheduledWindow {
  const { policy, coverage, sourceNow } = input;
  const settled = addMillis(sourceNow, -policy.settle);
  const { bound, capped } = upperBound(input, settled);
  if (policy.day === 'yesterday') {
    const day = previousDay(sourceNow, input.zone);
    const to = earliest(day.to, bound);
    const from = earliest(day.from, to, ...(coverage === null ? [] : [coverage]));
    return { window: { from, to }, heldBackMs: lagOf(bound, earliest(day.to, settled)), capped };
  }
  const back = addMillis(bound, -(policy.lookback ?? 0));
  const from = coverage === null ? back : earliest(back, coverage);
  return { window: { from, to: bound }, heldBackMs: lagOf(bound, settled), capped };
}

/** Behind every transaction that may still write, but at most `maxHoldback` behind the settled time. */
function upperBound(input: WindowInput, settled: Instant): { bound: Instant; capped: boolean } {
  const { policy, sourceNow } = input;
  if (!input.seesTransactions) {
    return {
      bound: earliest(settled, addMillis(sourceNow, -(policy.maxTransactionAge ?? 0))),
      capped: false,
    };
  }
  const wanted = earliest(settled, input.oldestOpen ?? settled);
  const cap = addMillis(settled, -policy.maxHoldback);
  return { bound: latest(wanted, cap), capped: wanted < cap };
}

function lagOf(bound: Instant, wanted: Instant): number {
  return bound < wanted ? millisOf(wanted) - millisOf(bound) : 0;
}

function previousDay(now: Instant, zone: string): Window {
  const today = DateTime.fromMillis(millisOf(now), { zone }).startOf('day');
  // The day before by the calendar, not 24 hours before: a day with a clock change has 23 or 25.
  const yesterday = today.minus({ days: 1 }).startOf('day');
  return { from: instantFromMillis(yesterday.toMillis()), to: instantFromMillis(today.toMillis()) };
}

/** Cuts a window into pieces of `chunkMs` that touch without gap or overlap; the last one may be shorter. */
export function chunks(window: Window, chunkMs: number): readonly Window[] {
  if (!(chunkMs >= 1)) throw new RangeError(`a chunk of ${chunkMs} ms never ends a window; use 1 ms or more`);
  const pieces: Window[] = [];
  let from = window.from;
  while (from < window.to) {
    const to = earliest(addMillis(from, chunkMs), window.to);
    pieces.push({ from, to });
    from = to;
  }
  return pieces;
}
