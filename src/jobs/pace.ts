import { setTimeout as sleep } from 'node:timers/promises';
import type { Compensation } from '../store/compensation-row.ts';
import { changeState } from '../store/compensations.ts';
import { runSlotInMs } from '../store/run-gate.ts';
import type { SendDeps } from './run-compensation.ts';

/** Longest wait for a run's slot within this process, while its ring lives; beyond it the row returns to the ledger. */
const LONGEST_WAIT_MS = 8_000;

/**
 * Turns at the gates of runs within this process, first come, first served. A run's slot is waited for before the
 * turn at its target's gate, so that a slow run never holds up the others there.
 */
export class Paces {
  readonly #last = new Map<string, Promise<void>>();

  /** Resolves when it is the caller's turn, with what ends the turn. */
  async take(run: string): Promise<() => void> {
    const before = this.#last.get(run);
    let end: () => void = () => {};
    const turn = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#last.set(run, turn);
    await before;
    return () => {
      if (this.#last.get(run) === turn) this.#last.delete(run);
      end();
    };
  }
}

/**
 * Waits until the gate of the compensation's run has a slot, where the run has a watermark of its own. Gives what ends
 * the turn; null when the row went back to the ledger.
 */
export async function waitForPace(
  deps: Pick<SendDeps, 'db' | 'timing' | 'times' | 'draining' | 'paces'>,
  claimed: Compensation,
): Promise<(() => void) | null> {
  if (claimed.runId === null || claimed.runWatermark === null) return () => {};
  const run = { id: claimed.runId, watermark: claimed.runWatermark };
  const end = await deps.paces.take(run.id);
  try {
    const waitMs = await runSlotInMs(deps.db, run, deps.timing);
    if (waitMs <= Math.min(LONGEST_WAIT_MS, deps.times.ring / 3) && !deps.draining.aborted) {
      if (waitMs > 0) await sleep(waitMs, undefined, { signal: deps.draining }).catch(() => {});
      return end;
    }
    await changeState(deps.db, {
      from: claimed,
      event: { type: 'put-back' },
      dueInMs: deps.draining.aborted ? 0 : waitMs,
    });
  } catch (error) {
    end();
    throw error;
  }
  end();
  return null;
}
