/**
 * How long a target is down (rule 6.12): from its first failure after a good answer until its latest one. The time
 * after the latest failure proves nothing, since nobody asked. What a person held in between does not count. Times are
 * epoch milliseconds of the store's clock. Plain JSON, kept in the gate's row; null while the target is well.
 */
export interface Outage {
  readonly sinceMs: number;
  /** The latest failure. */
  readonly seenMs: number;
  /** Of the time since the first failure: how long a person held the gate. */
  readonly heldMs: number;
}

/** After an answer: a good one ends the outage, a failure of the target begins or prolongs it. */
export function outageAfter(outage: Outage | null, answer: 'good' | 'failed', nowMs: number): Outage | null {
  if (answer === 'good') return null;
  return { sinceMs: outage?.sinceMs ?? nowMs, heldMs: outage?.heldMs ?? 0, seenMs: nowMs };
}

/** After the release of a hold that began at `heldFromMs`; null where nobody knows when: the clock begins anew. */
export function outageAfterHold(
  outage: Outage | null,
  heldFromMs: number | null,
  nowMs: number,
): Outage | null {
  if (outage === null || heldFromMs === null) return null;
  return { ...outage, heldMs: outage.heldMs + Math.max(0, nowMs - Math.max(heldFromMs, outage.sinceMs)) };
}

/**
 * Repairs that wait since this moment or longer are given up: the target has been down for `giveUpAfterMs`, and they
 * waited that long during it. Null while nothing is given up. A repair that began to wait during the outage is
 * measured from the last release at the earliest, which is never too soon.
 */
export function givenUpSince(
  outage: Outage | null,
  releasedMs: number | null,
  giveUpAfterMs: number,
): number | null {
  if (outage === null || outage.seenMs - outage.sinceMs - outage.heldMs < giveUpAfterMs) return null;
  const longEnough = outage.seenMs - giveUpAfterMs;
  return releasedMs !== null && releasedMs > longEnough
    ? outage.sinceMs
    : Math.max(outage.sinceMs, longEnough);
}
