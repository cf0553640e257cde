/** A slot is granted at most half a second ahead; who has not sent by then asks again. */
const EXPECTED_MS = 1000;
/** So many times in a row the connections that were opened ahead were gone at the slot: then the target is not well. */
const MOST_MISSED = 3;

/** Connections to a target do open, and none lives until its slot. Surely nothing was sent. */
class ConnectionsLost extends Error {
  override readonly name = 'ConnectionsLost';
  readonly code = 'ECONNRESET';
}

/**
 * Whether a call could start at once, from what was opened ahead of its slot (rule 6.14). A call never connects late:
 * either a connection is at hand, or the failure to open one is known and is the outcome, or the slot is dropped. Slots
 * are not dropped for ever: after a few in a row the loss is a failure as well.
 */
export class Readiness {
  /** When `warm` was asked for a connection that no send has taken yet. */
  #expected: number[] = [];
  #failure: { readonly error: unknown } | null = null;
  #missed = 0;

  /** One more caller will send soon; how many are expected now, at most `most`. */
  expect(most: number): number {
    const now = performance.now();
    this.#expected = this.#expected.filter((asked) => now - asked < EXPECTED_MS);
    if (this.#expected.length < most) this.#expected.push(now);
    return this.#expected.length;
  }

  /** A caller sends now. */
  taken(): void {
    this.#expected.shift();
  }

  opened(): void {
    this.#failure = null;
  }

  failed(error: unknown): void {
    this.#failure = { error };
  }

  /** Asked right before a send; `atHand`: a connection is open and free. */
  ready(atHand: boolean): boolean {
    if (atHand || this.#failure !== null) {
      this.#missed = 0;
      return true;
    }
    this.#missed += 1;
    if (this.#missed < MOST_MISSED) return false;
    this.#missed = 0;
    this.failed(new ConnectionsLost('each connection was lost again before a call could use it'));
    return true;
  }

  /** Throws the known failure to connect: to try again now would make the call late. */
  throwKnownFailure(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }
}
