import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 20;

/**
 * Asks `probe` every 20 ms until it gives something truthy, and returns that. After `timeoutMs` (10 s) it throws
 * with `description`. A probe that throws has not succeeded yet; its last error is the cause of the timeout.
 */
export async function until<T>(
  description: string,
  probe: () => Promise<T> | T,
  { timeoutMs = 10_000 }: { timeoutMs?: number } = {},
): Promise<T> {
  const end = performance.now() + timeoutMs;
  let cause: unknown;
  for (;;) {
    try {
      const found = await probe();
      if (found) return found;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > end)
      throw new Error(`waited ${timeoutMs} ms in vain until ${description}`, { cause });
    await sleep(POLL_MS);
  }
}
