import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for `work`, at most `ms`. False when it has not ended by then; it goes on, and nobody waits for it. */
export async function within(work: Promise<unknown>, ms: number): Promise<boolean> {
  const timer = new AbortController();
  const bound = sleep(Math.max(0, ms), false, { signal: timer.signal }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), bound]);
  } finally {
    timer.abort();
    // What fails after the bound is nobody's to handle any more.
    work.catch(() => undefined);
  }
}
