import { type GateTiming, isLost, recoverState, type SlotState, spacing } from './watermark.ts';

export interface PaceAsk {
  /** The slot that the target's gate would give, on the store's clock. */
  readonly slotMs: number;
  /** The store's clock, read after the lock on this gate was taken; waiting for it may have passed the slot. */
  readonly nowMs: number;
  /** N of the run: calls per window. */
  readonly limit: number;
  readonly timing: GateTiming;
}

export type PaceReply =
  /** The slot is this gate's too; `state` must be stored. */
  | { readonly fits: true; readonly state: SlotState }
  /** This gate's next slot is after that. `state` must be stored when it is another object than the one given. */
  | { readonly fits: false; readonly inMs: number; readonly state: SlotState };

/**
 * Whether a slot of a target's gate may be used by a run with a watermark of its own. Slots taken are at least
 * `spacing` apart, as at any gate, so the theorem of `watermark.ts` holds for them. A slot that comes too early is
 * refused and not moved: moving it would hold up everybody else at the target.
 */
export function ownPace(state: SlotState | null, ask: PaceAsk): PaceReply {
  const { slotMs, nowMs, limit, timing } = ask;
  const known = state === null || isLost(state, nowMs, timing) ? recoverState(nowMs, timing) : state;
  const nextMs = known.lastSlotMs + spacing(limit, timing);
  if (slotMs >= nextMs) return { fits: true, state: { lastSlotMs: slotMs } };
  return { fits: false, inMs: Math.max(0, nextMs - nowMs), state: known };
}
