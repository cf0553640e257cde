import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../observe/logger.ts';

export interface Repeating {
  /** Stops after the round in hand; resolves when it has ended. */
  stop(): Promise<void>;
}

const LONGEST_PAUSE_MS = 15_000;

/**
 * Runs `round` again and again with a pause in between; a round that returns true is followed by the next at once.
 * Failures are logged and never end it: after each failure in a row the pause doubles, up to 15 s. Pauses vary by a
 * fifth, so that many processes do not step together.
 */
export function repeat(
  name: string,
  pauseMs: number,
  logger: Logger,
  round: (signal: AbortSignal) => Promise<boolean>,
): Repeating {
  const stopping = new AbortController();
  let failures = 0;
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      let again = false;
      try {
        again = await round(stopping.signal);
        failures = 0;
      } catch (err) {
        if (stopping.signal.aborted) return;
        failures += 1;
        // The first failure in a row is told whole; the rest of an outage is one line per pause.
        logger.warn(
          { event: 'loop.failed', loop: name, failures, err },
          `${name} failed; it will be tried again`,
        );
      }
      if (again) continue;
      const pause = Math.min(pauseMs * 2 ** Math.min(failures, 10), Math.max(pauseMs, LONGEST_PAUSE_MS));
      await pausing(pause * (0.9 + Math.random() * 0.2), stopping.signal);
    }
  };
  const running = loop();
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

async function pausing(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
