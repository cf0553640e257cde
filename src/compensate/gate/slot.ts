/**
 * What the gate answers when a call asks for a slot. Times are relative to the store's clock at the moment of the
 * answer, so the worker's wall clock plays no part (rule 6.14): with m0 and m1 the monotonic times before asking
 * and after the answer, the call may start only in [m1 + delayMs, m0 + delayMs + validMs].
 */
export type SlotAnswer =
  | { readonly kind: 'granted'; readonly delayMs: number; readonly validMs: number }
  /** Nothing was consumed; ask again after this. */
  | { readonly kind: 'wait'; readonly delayMs: number }
  | { readonly kind: 'held'; readonly reason: string }
  /** The breaker is open (or the effective rate is 0). */
  | { readonly kind: 'open'; readonly delayMs: number };
