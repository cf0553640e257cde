import { setTimeout as sleep } from 'node:timers/promises';
import { type Key, keyText, type Verdict } from '../reconcile/record.ts';

/** A look and when it was taken, on this process's monotonic clock. */
export interface Look {
  readonly verdict: Verdict;
  /** The moment before the read began: the look is at least this fresh. */
  readonly takenAtMs: number;
}

/** Keys that are asked for within this time share one read of each side. */
const GATHER_MS = 15;
const MAX_BATCH = 500;

interface Waiting {
  readonly key: Key;
  readonly resolve: (look: Look) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Fresh looks, gathered: sends that are about to happen ask for one key each, and the sides answer many keys in one
 * call, so looks cost the downstream a fraction of the sends they protect (rule 6.9).
 */
export class LookBatch {
  readonly #look: (keys: readonly Key[]) => Promise<ReadonlyMap<string, Verdict>>;
  #waiting: Waiting[] = [];

  constructor(look: (keys: readonly Key[]) => Promise<ReadonlyMap<string, Verdict>>) {
    this.#look = look;
  }

  /** Rejects with the side's error when the read failed; nothing is assumed then. */
  look(key: Key): Promise<Look> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, resolve, reject });
      if (this.#waiting.length === 1) void this.#gather();
      else if (this.#waiting.length >= MAX_BATCH) void this.#flush();
    });
  }

  async #gather(): Promise<void> {
    await sleep(GATHER_MS);
    await this.#flush();
  }

  async #flush(): Promise<void> {
    const batch = this.#waiting;
    this.#waiting = [];
    if (batch.length === 0) return;
    const takenAtMs = performance.now();
    try {
      const verdicts = await this.#look(batch.map((waiting) => waiting.key));
      for (const { key, resolve, reject } of batch) {
        const verdict = verdicts.get(keyText(key));
        if (verdict) resolve({ verdict, takenAtMs });
        else reject(new Error(`the look gave no answer for ${keyText(key)}`));
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
