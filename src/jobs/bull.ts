import type { Queue, Worker } from 'bullmq';
import type { Config, Schedule } from '../config/schema.ts';
import { displayUrl, type Secret } from '../config/secret.ts';
import { EXIT, TrueupError } from '../error.ts';
import { nextSlot } from './cron.ts';

/** What the two ways to run BullMQ have in common. */

export type QueueName = 'ticks' | 'runs' | 'sends' | 'retries';

export type Handle = (data: Readonly<Record<string, string | number>>) => Promise<void>;

export interface Tick {
  readonly name: string;
  readonly schedule: Schedule;
  readonly zone: string;
}

export interface QueueAddress {
  readonly url: Secret;
  readonly options: Config['queue'];
}

export interface BackendEvents {
  readonly onError: (error: Error) => void;
}

/** A connected BullMQ. */
export interface Bull {
  /** `ticks` is asked for the schedules of the moment, so that one queue lasts. */
  readonly queue: (name: QueueName, ticks: () => readonly Tick[]) => Queue;
  readonly worker: (name: QueueName, concurrency: number, handle: Handle) => Worker;
  /** Runs `fn` while no other process does. */
  readonly exclusive: <T>(fn: () => Promise<T>) => Promise<T>;
  readonly alive: () => Promise<boolean>;
  readonly end: () => Promise<void>;
}

/** Takes over after a crash once the lock has run out and been noticed: 30 s lock, checked each 15 s. */
const LOCK_MS = 30_000;
const STALLED_MS = 15_000;
export const RECONNECT_MS = 1000;

/** BullMQ asks this for the next time of a scheduler; our own function answers (see cron.ts). */
export function repeatStrategy(ticks: () => readonly Tick[]) {
  return (millis: number, options: { pattern?: string; tz?: string }): number | undefined => {
    const tick = ticks().find(
      (known) => known.schedule.cron === options.pattern && known.zone === options.tz,
    );
    const schedule = tick?.schedule ?? {
      cron: options.pattern ?? '',
      gap: 'run-after' as const,
      overlap: 'first' as const,
    };
    const slot = nextSlot(schedule, options.tz ?? 'UTC', millis);
    return slot === undefined ? undefined : Date.parse(slot.nominal);
  };
}

export const WORKER_OPTIONS = {
  lockDuration: LOCK_MS,
  stalledInterval: STALLED_MS,
  maxStalledCount: 1,
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 0 },
  runRetryDelay: RECONNECT_MS,
};

export function unreachable(address: QueueAddress, cause: unknown): TrueupError {
  const message = cause instanceof Error ? cause.message : String(cause);
  return new TrueupError('TRU_QUEUE_UNREACHABLE', `queue ${displayUrl(address.url)}: ${message}`, {
    exit: EXIT.temporary,
    hint: 'check QUEUE_URL (queue.url), that the server runs, and that this host may reach it',
    cause,
  });
}
