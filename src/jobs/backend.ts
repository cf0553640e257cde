import type { Queue, Worker } from 'bullmq';
import type { BackendEvents, Bull, Handle, QueueAddress, QueueName, Tick } from './bull.ts';
import { openPostgres } from './bull-postgres.ts';
import { openRedis } from './bull-redis.ts';
import { within } from './within.ts';

/**
 * BullMQ, on Redis or on PostgreSQL, behind the few calls that trueup needs. The queue carries ids and may be
 * flushed at any moment: the store holds the truth (DESIGN section 3). Separate queues, so that a hanging target
 * delays nobody else.
 */
export interface QueuedJob {
  /** Unique per piece of work and ring, so that an ambiguous `add` can be repeated. */
  readonly id: string;
  readonly data: Readonly<Record<string, string | number>>;
}

export interface Consumer {
  /** Stops claiming and waits for the jobs in hand, at most `withinMs`; then lets go of them. */
  close(withinMs: number): Promise<void>;
}

export interface QueueBackend {
  readonly kind: 'redis' | 'postgres';
  /** Connects; every other call does so by itself, but `consume`, which needs it done. */
  open(): Promise<void>;
  /** Throws when the queue cannot take the jobs now; the ring expires and the sweep tries again. */
  add(queue: QueueName, jobs: readonly QueuedJob[]): Promise<void>;
  consume(queue: QueueName, concurrency: number, handle: Handle): Consumer;
  /** Keeps BullMQ's job schedulers equal to the list: missing ones are made, unknown ones in our queue removed. */
  keepTicks(ticks: readonly Tick[]): Promise<void>;
  listTicks(): Promise<{ name: string; next: number | null }[]>;
  /** True when the queue answers. */
  alive(): Promise<boolean>;
  /** Takes a few seconds at most, also while the queue does not answer. */
  close(): Promise<void>;
}

/**
 * The queue at an address; nothing is connected before `open` or the first call. `namespace` is the store's id, so two
 * teams on one Redis never touch each other (rule 7.1). Opening throws `TRU_QUEUE_UNREACHABLE` (exit 75), or
 * `TRU_QUEUE_EVICTS` when Redis may drop jobs.
 */
export function createBackend(address: QueueAddress, namespace: string, events: BackendEvents): QueueBackend {
  const postgres = /^postgres(ql)?:/.test(address.url.reveal());
  const connect = postgres ? openPostgres : openRedis;
  return new BullBackend(postgres ? 'postgres' : 'redis', () => connect(address, namespace, events), events);
}

/** Closing says goodbye to a server that may not listen; nothing depends on it. */
const CLOSE_MS = 500;

class BullBackend implements QueueBackend {
  readonly kind: 'redis' | 'postgres';
  readonly #connect: () => Promise<Bull>;
  readonly #events: BackendEvents;
  readonly #queues = new Map<QueueName, Queue>();
  #ticks: readonly Tick[] = [];
  #connecting: Promise<Bull> | undefined;
  #bull: Bull | undefined;

  constructor(kind: 'redis' | 'postgres', connect: () => Promise<Bull>, events: BackendEvents) {
    this.kind = kind;
    this.#connect = connect;
    this.#events = events;
  }

  async open(): Promise<void> {
    await this.#opened();
  }

  async #opened(): Promise<Bull> {
    this.#connecting ??= this.#connect();
    try {
      this.#bull = await this.#connecting;
      return this.#bull;
    } catch (error) {
      this.#connecting = undefined;
      throw error;
    }
  }

  async #queue(name: QueueName): Promise<Queue> {
    const bull = await this.#opened();
    let queue = this.#queues.get(name);
    if (!queue) {
      queue = bull.queue(name, () => this.#ticks);
      queue.on('error', this.#events.onError);
      this.#queues.set(name, queue);
    }
    return queue;
  }

  async add(name: QueueName, jobs: readonly QueuedJob[]): Promise<void> {
    if (jobs.length === 0) return;
    const opts = { attempts: 1, removeOnComplete: true, removeOnFail: true };
    const queue = await this.#queue(name);
    await queue.addBulk(jobs.map((job) => ({ name, data: job.data, opts: { ...opts, jobId: job.id } })));
  }

  consume(name: QueueName, concurrency: number, handle: Handle): Consumer {
    if (!this.#bull) throw new Error('the queue is not open');
    const inHand = new Set<Promise<void>>();
    const worker = this.#bull.worker(name, concurrency, async (data) => {
      const job = handle(data);
      inHand.add(job);
      try {
        await job;
      } finally {
        inHand.delete(job);
      }
    });
    worker.on('error', this.#events.onError);
    return { close: (withinMs) => closeWorker(worker, inHand, withinMs) };
  }

  async keepTicks(ticks: readonly Tick[]): Promise<void> {
    this.#ticks = ticks;
    const queue = await this.#queue('ticks');
    const bull = await this.#opened();
    // Two processes that upsert one scheduler at once leave two pending jobs on PostgreSQL (measured), hence the lock.
    await bull.exclusive(async () => {
      const known = new Map(
        (await queue.getJobSchedulers(0, -1)).map((found) => [found.key, found.template?.data?.rules]),
      );
      for (const tick of ticks) {
        if (known.get(tick.name) === rulesOf(tick)) continue;
        await queue.upsertJobScheduler(
          tick.name,
          { pattern: tick.schedule.cron, tz: tick.zone },
          {
            name: 'tick',
            data: { reconciliation: tick.name, rules: rulesOf(tick) },
            opts: { removeOnComplete: true, removeOnFail: true },
          },
        );
      }
      const wanted = new Set(ticks.map((tick) => tick.name));
      for (const name of known.keys()) {
        if (!wanted.has(name)) await queue.removeJobScheduler(name);
      }
    });
  }

  async listTicks(): Promise<{ name: string; next: number | null }[]> {
    const schedulers = await (await this.#queue('ticks')).getJobSchedulers(0, -1);
    return schedulers.map((scheduler) => ({ name: scheduler.key, next: scheduler.next ?? null }));
  }

  async alive(): Promise<boolean> {
    return (await this.#opened()).alive();
  }

  async close(): Promise<void> {
    await within(Promise.allSettled([...this.#queues.values()].map((queue) => queue.close())), CLOSE_MS);
    this.#queues.clear();
    if (this.#bull) await within(this.#bull.end(), CLOSE_MS);
  }
}

/** What decides a scheduler's next time: when it changes, the pending tick is made anew. */
function rulesOf({ schedule, zone }: Tick): string {
  return `${schedule.cron} ${zone} ${schedule.gap} ${schedule.overlap}`;
}

/**
 * Stops claiming, waits for the jobs in hand, and lets go of them after the bound. Not left to BullMQ: its `close()`
 * hangs while Redis is down, and once it has begun, `close(true)` waits for the same jobs (both measured).
 */
async function closeWorker(
  worker: Worker,
  inHand: ReadonlySet<Promise<void>>,
  withinMs: number,
): Promise<void> {
  await worker.pause(true);
  const ended = await within(Promise.allSettled(inHand), withinMs);
  // Jobs that ended still have to be taken off the queue; whoever sees one of them again finds its ring gone.
  await within(worker.close(!ended), CLOSE_MS);
}
