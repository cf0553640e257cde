import type { Channel, Delivered } from '../alert/channel.ts';
import { claimSize } from '../alert/claim-size.ts';
import { digest } from '../alert/digest.ts';
import { waitBefore } from '../compensate/retry/wait.ts';
import type { WaitPolicy } from '../config/schema.ts';
import {
  type ClaimedMessage,
  claimMessages,
  recordFailure,
  recordSent,
  releaseMessages,
} from '../store/alert-messages.ts';
import type { Db } from '../store/database.ts';
import { TIMES } from './times.ts';

/** What one send to one channel came to; for the log and `trueup_alerts_total`. */
export interface Delivery {
  readonly channel: string;
  /** `refused`: the channel will never take this message. */
  readonly result: 'sent' | 'failed' | 'refused';
  /** Messages that this send stood for; more than one is a digest. */
  readonly messages: number;
  /** Why it failed; null when it was sent. */
  readonly reason: string | null;
}

const SEND_MS = 15_000;
const BACK_OFF: WaitPolicy = {
  kind: 'exponential',
  base: 1_000,
  factor: 2,
  step: 0,
  cap: 300_000,
  jitter: 0.2,
};

/**
 * Delivers what waits in the outbox, once through; called by a timer. Channels do not wait for each other, one channel
 * gets its messages in order. A message is delivered at least once: it leaves the outbox only when the channel took
 * it or refused it for good. A failure is tried again after 1 s, doubling up to 5 min, and the rest of the channel's
 * messages waits with it. When more messages wait than the channel's rate allows, they become one. Throws what the
 * store throws, after all channels ended. After a crash in mid-send the message is sent again, under the same id, when
 * `leaseMs` is over; left out: 30 s. `checkpoint` is called between a send and its record, for the crash suite.
 */
export async function deliverAlerts({
  channels,
  ...delivering
}: Delivering & { readonly channels: readonly Channel[] }): Promise<readonly Delivery[]> {
  const ended = await Promise.allSettled(channels.map((channel) => deliverChannel(delivering, channel)));
  const broken = ended.find((end) => end.status === 'rejected');
  if (broken) throw broken.reason;
  return ended.flatMap((end) => (end.status === 'fulfilled' ? end.value : []));
}

interface Delivering {
  readonly db: Db;
  readonly signal: AbortSignal;
  readonly leaseMs?: number;
  readonly checkpoint?: (name: string) => Promise<void>;
}

async function deliverChannel(
  { db, signal, leaseMs = TIMES.alertLease, checkpoint }: Delivering,
  channel: Channel,
): Promise<Delivery[]> {
  const deliveries: Delivery[] = [];
  while (!signal.aborted) {
    const claimed = await claimMessages(db, channel.name, (load) => claimSize(load, channel.rate), leaseMs);
    const [first, ...rest] = claimed.map(({ message }) => message);
    if (first === undefined) break;
    const message = digest([first, ...rest]);
    const delivered = await channel.send(message, AbortSignal.any([signal, AbortSignal.timeout(SEND_MS)]));
    await checkpoint?.('in-alert-delivery');
    if (!delivered.sent && signal.aborted) {
      await releaseMessages(db, claimed);
      break;
    }
    deliveries.push(await record(db, channel, claimed, delivered));
    if (!delivered.sent && !delivered.permanent) break;
  }
  return deliveries;
}

async function record(
  db: Db,
  channel: Channel,
  claimed: readonly ClaimedMessage[],
  delivered: Delivered,
): Promise<Delivery> {
  const delivery = { channel: channel.name, messages: claimed.length };
  if (delivered.sent) {
    await recordSent(db, claimed);
    return { ...delivery, result: 'sent', reason: null };
  }
  const { reason, permanent } = delivered;
  await recordFailure(db, claimed, {
    reason,
    dueInMs: permanent ? null : dueIn(claimed, delivered.retryAfterMs),
  });
  return { ...delivery, result: permanent ? 'refused' : 'failed', reason };
}

/** The back-off of the oldest message, or what the channel asked for, whichever is longer. */
function dueIn(claimed: readonly ClaimedMessage[], retryAfterMs: number | null): number {
  const tries = Math.max(1, ...claimed.map(({ attempts }) => attempts));
  return Math.max(waitBefore(tries, BACK_OFF, Math.random), retryAfterMs ?? 0);
}
