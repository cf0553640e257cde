import { setTimeout as sleep } from 'node:timers/promises';
import type { SlotAnswer } from '../compensate/gate/slot.ts';
import { mayStart } from '../compensate/gate/watermark.ts';
import { TrueupError } from '../error.ts';

/**
 * Waits until a call may start: asks, sleeps until the slot, and asks again when the slot was missed or is not near.
 * `ask` is `grantRead` or `grantCall` of the store. Throws when the gate is held or the signal aborts.
 */
export async function takeTurn(ask: () => Promise<SlotAnswer>, signal: AbortSignal): Promise<void> {
  for (;;) {
    const m0 = performance.now();
    const answer = await ask();
    const m1 = performance.now();
    if (answer.kind === 'granted') {
      if (await waitForTurn({ m0, m1, ...answer }, signal)) return;
      continue;
    }
    if (answer.kind === 'held')
      throw new TrueupError('TRU_GATE_HELD', `the target is on hold: ${answer.reason}`);
    await sleep(Math.max(1, answer.delayMs), undefined, { signal });
  }
}

async function waitForTurn(slot: Parameters<typeof mayStart>[0], signal: AbortSignal): Promise<boolean> {
  for (;;) {
    const now = performance.now();
    const may = mayStart(slot, now);
    if (may !== 'early') return may === 'now';
    await sleep(Math.max(1, slot.m1 + slot.delayMs - now), undefined, { signal });
  }
}
