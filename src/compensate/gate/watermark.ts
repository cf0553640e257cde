import type { SlotAnswer } from './slot.ts';

/**
 * The arithmetic behind "in any half-open window at most N calls start, and at most N arrive". Slots are `spacing`
 * apart, and a call starts at its slot or at most `validMs` later. Of N + 1 calls the last therefore starts at least
 * `N * spacing - validMs >= windowMs + transitMs` after the first, so no half-open window holds all their starts; and
 * none holds all their arrivals, as long as the first was not on its way for over `transitMs` longer than the last.
 * The target counts arrivals, and a call can wait in a busy process or network after its start. No burst is allowed
 * and no token is saved up: idle time is never made up for.
 *
 * A change of N takes effect with the next grant, because the state keeps the last slot and the next one is
 * `last slot + spacing(N of now)`. Slots that were granted before stay; the last of them starts at most
 * `horizonMs + validMs` after the change. Over that stretch the change is going on, and a window that touches it
 * obeys the larger N; every later one the new.
 */
export interface GateTiming {
  /** The window of the watermark, in ms. */
  readonly windowMs: number;
  /** V: how long after its slot a call may still start, in ms. */
  readonly validMs: number;
  /** How much longer one call may be on its way to the target than another before arrivals bunch up, in ms. */
  readonly transitMs: number;
  /** H: how far ahead a slot is granted at most, in ms. */
  readonly horizonMs: number;
}

/** The timing everywhere but in tests, which scale it down. */
export const MINUTE: GateTiming = { windowMs: 60_000, validMs: 250, transitMs: 250, horizonMs: 500 };

/** What the store keeps of a gate. Plain JSON. */
export interface SlotState {
  /** Store clock, epoch ms: the slot granted last. Nothing starts before `lastSlotMs + spacing`. */
  readonly lastSlotMs: number;
}

/**
 * Slots are whole 1024ths of a millisecond. Epoch milliseconds of that grain are exact in a double until the year
 * 2248, so adding spacings a million times loses nothing, and N spacings are never less than the window.
 */
const GRAIN = 1024;

/** Milliseconds between two slots at N calls per window; null is unlimited. Rounded up to 1/1024 ms. */
export function spacing(limit: number | null, timing: GateTiming): number {
  if (limit === null) return 0;
  return grainUp((timing.windowMs + timing.validMs + timing.transitMs) / limit);
}

export interface SlotAsk {
  /** The store's clock, epoch ms, read after the lock on the gate was taken. */
  readonly nowMs: number;
  /** N: calls per window now. Null is unlimited; 0 lets nothing through. */
  readonly limit: number | null;
  readonly timing: GateTiming;
}

export interface SlotReply {
  readonly answer: Extract<SlotAnswer, { kind: 'granted' | 'wait' | 'open' }>;
  /** Must be stored whenever it is another object than the one given, also when the answer is to wait. */
  readonly state: SlotState;
}

/**
 * Asks for one slot. `state` is null when it was lost: no row yet, or one written by another server's clock. A state
 * further ahead than any grant can be counts as lost too (the store's clock was moved back). Lost state begins anew,
 * late enough for whatever was granted before (rule 6.15).
 */
export function requestSlot(state: SlotState | null, ask: SlotAsk): SlotReply {
  const { nowMs, timing } = ask;
  const known = state === null || isLost(state, nowMs, timing) ? recoverState(nowMs, timing) : state;
  if (ask.limit === 0) return { answer: { kind: 'open', delayMs: timing.horizonMs }, state: known };
  const slotMs = Math.max(grainUp(nowMs), known.lastSlotMs + spacing(ask.limit, timing));
  const delayMs = slotMs - nowMs;
  if (delayMs > timing.horizonMs) {
    return { answer: { kind: 'wait', delayMs: delayMs - timing.horizonMs }, state: known };
  }
  return { answer: { kind: 'granted', delayMs, validMs: timing.validMs }, state: { lastSlotMs: slotMs } };
}

/**
 * True when the last slot is further ahead than a grant or a recovery can have put it: `horizonMs + validMs`. (Rule
 * 6.15 says "H + T" of the next slot; the recovered state itself is V further, and would count as lost at once.)
 */
export function isLost(state: SlotState, nowMs: number, timing: GateTiming): boolean {
  return state.lastSlotMs > grainUp(nowMs) + timing.horizonMs + timing.validMs;
}

/**
 * State to begin with when nothing is known: as if a slot had been granted as far ahead as possible and its call had
 * started as late as possible. The first new slot is then at `now + H + V + T`.
 */
export function recoverState(nowMs: number, timing: GateTiming): SlotState {
  return { lastSlotMs: grainUp(nowMs) + timing.horizonMs + timing.validMs };
}

/** A granted slot with the worker's monotonic times before asking (m0) and after the answer (m1). */
export interface TimedSlot {
  readonly m0: number;
  readonly m1: number;
  readonly delayMs: number;
  readonly validMs: number;
}

/**
 * Whether a call may start at this monotonic time. The store read its clock somewhere between m0 and m1, so
 * `m1 + delay` is surely not before the slot and `m0 + delay + valid` surely not after its validity. When asking took
 * longer than the validity, no moment is sure and the slot is `late` at once; drop it and ask again.
 */
export function mayStart(slot: TimedSlot, monotonicNow: number): 'early' | 'now' | 'late' {
  const from = slot.m1 + slot.delayMs;
  const until = slot.m0 + slot.delayMs + slot.validMs;
  if (from > until || monotonicNow > until) return 'late';
  return monotonicNow < from ? 'early' : 'now';
}

function grainUp(ms: number): number {
  return Math.ceil(ms * GRAIN) / GRAIN;
}
