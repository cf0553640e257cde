import type { ChannelLoad } from '../store/alert-messages.ts';

/** A digest lists what has room and counts the rest; more than this at once helps nobody. */
const DIGEST_MESSAGES = 500;
/** After this many tries whatever has piled up is told in one message. */
const TIRED = 5;

/**
 * How many waiting messages to take now: one, all for a digest when they are more than the channel may still be sent
 * in this minute, or none when the minute is full. `rate` is the most messages in 60 seconds.
 */
export function claimSize(load: ChannelLoad, rate: number): number {
  const allowed = rate - load.recentSends;
  if (load.waiting === 0 || allowed < 1) return 0;
  return load.waiting > allowed || load.headAttempts >= TIRED ? DIGEST_MESSAGES : 1;
}
