import { setTimeout as sleep } from 'node:timers/promises';
import { createPostgresBackend, Queue, runMigrations, Worker, withBackend } from 'bullmq';
import { Cluster, Redis } from 'ioredis';
import pg from 'pg';
import type { Config, Schedule } from '../config/schema.ts';
import { displayUrl, type Secret } from '../config/secret.ts';
import { EXIT, TrueupError } from '../error.ts';
import { nextSlot } from './cron.ts';

/**
 * BullMQ, on Redis or on PostgreSQL, behind the few calls that trueup needs. The queue carries ids and may be
 * flushed at any moment: the store holds the truth (DESIGN section 3). Separate queues, so that a hanging target
 * delays nobody else.
 */
export type QueueName = 'ticks' | 'runs' | 'sends' | 'retries';

export interface QueuedJob {
  /** Unique per piece of work and ring, so that an ambiguous `add` can be repeated. */
  readonly id: string;
  readonly data: Readonly<Record<string, string | number>>;
}

export interface Consumer {
  /** Stops claiming and waits for the jobs in hand, at most `withinMs`; then lets go of them. */
  close(withinMs: number): Promise<void>;
}

export interface Tick {
  readonly name: string;
  readonly schedule: Schedule;
  readonly zone: string;
}

export interface QueueBackend {
  readonly kind: 'redis' | 'postgres';
  /** Throws when the queue cannot take the jobs now; the ring expires and the sweep tries again. */
  add(queue: QueueName, jobs: readonly QueuedJob[]): Promise<void>;
  consume(
    queue: QueueName,
    concurrency: number,
    handle: (data: QueuedJob['data']) => Promise<void>,
  ): Consumer;
  /** Keeps BullMQ's job schedulers equal to the list: missing ones are made, unknown ones in our queue removed. */
  keepTicks(ticks: readonly Tick[]): Promise<void>;
  listTicks(): Promise<{ name: string; next: number | null }[]>;
  /** True when the queue answers. */
  alive(): Promise<boolean>;
  close(): Promise<void>;
}

export interface QueueAddress {
  readonly url: Secret;
  readonly options: Config['queue'];
}

export interface BackendEvents {
  readonly onError: (error: Error) => void;
}

/** Takes over after a crash once the lock has run out and been noticed: 30 s lock, checked each 15 s. */
const LOCK_MS = 30_000;
const STALLED_MS = 15_000;
const RECONNECT_MS = 1000;
const POSTGRES_SCHEMA = 'trueup_queue';

interface Bull {
  readonly kind: 'redis' | 'postgres';
  readonly queue: (name: QueueName, ticks: readonly Tick[]) => Queue;
  readonly worker: (
    name: QueueName,
    concurrency: number,
    handle: (data: QueuedJob['data']) => Promise<void>,
  ) => Worker;
  readonly exclusive: <T>(fn: () => Promise<T>) => Promise<T>;
  readonly alive: () => Promise<boolean>;
  readonly end: () => Promise<void>;
}

/**
 * Connects to the queue. `namespace` is the store's id, so two teams on one Redis never touch each other (rule 7.1).
 * Throws `TRU_QUEUE_UNREACHABLE` (exit 75) or `TRU_QUEUE_EVICTS` when Redis may drop jobs.
 */
export async function openBackend(
  address: QueueAddress,
  namespace: string,
  events: BackendEvents,
): Promise<QueueBackend> {
  const bull = /^postgres(ql)?:/.test(address.url.reveal())
    ? await openPostgres(address, namespace, events)
    : await openRedis(address, namespace, events);
  return new BullBackend(bull, events);
}

class BullBackend implements QueueBackend {
  readonly kind: 'redis' | 'postgres';
  readonly #bull: Bull;
  readonly #events: BackendEvents;
  readonly #queues = new Map<QueueName, Queue>();
  #ticks: readonly Tick[] = [];

  constructor(bull: Bull, events: BackendEvents) {
    this.kind = bull.kind;
    this.#bull = bull;
    this.#events = events;
  }

  #queue(name: QueueName): Queue {
    let queue = this.#queues.get(name);
    if (!queue) {
      queue = this.#bull.queue(name, this.#ticks);
      queue.on('error', this.#events.onError);
      this.#queues.set(name, queue);
    }
    return queue;
  }

  async add(name: QueueName, jobs: readonly QueuedJob[]): Promise<void> {
    if (jobs.length === 0) return;
    const opts = { attempts: 1, removeOnComplete: true, removeOnFail: true };
    await this.#queue(name).addBulk(
      jobs.map((job) => ({ name, data: job.data, opts: { ...opts, jobId: job.id } })),
    );
  }

  consume(
    name: QueueName,
    concurrency: number,
    handle: (data: QueuedJob['data']) => Promise<void>,
  ): Consumer {
    const worker = this.#bull.worker(name, concurrency, handle);
    worker.on('error', this.#events.onError);
    return { close: (withinMs) => closeWorker(worker, withinMs) };
  }

  async keepTicks(ticks: readonly Tick[]): Promise<void> {
    this.#ticks = ticks;
    const old = this.#queues.get('ticks');
    this.#queues.delete('ticks');
    await old?.close();
    const queue = this.#queue('ticks');
    // Two processes that upsert one scheduler at once leave two pending jobs on PostgreSQL (measured), hence the lock.
    await this.#bull.exclusive(async () => {
      const known = new Map(
        (await queue.getJobSchedulers(0, -1)).map((scheduler) => [scheduler.key, scheduler.pattern]),
      );
      for (const tick of ticks) {
        if (known.get(tick.name) === tick.schedule.cron) continue;
        await queue.upsertJobScheduler(
          tick.name,
          { pattern: tick.schedule.cron, tz: tick.zone },
          {
            name: 'tick',
            data: { reconciliation: tick.name },
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
    const schedulers = await this.#queue('ticks').getJobSchedulers(0, -1);
    return schedulers.map((scheduler) => ({ name: scheduler.key, next: scheduler.next ?? null }));
  }

  alive(): Promise<boolean> {
    return this.#bull.alive();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.#queues.clear();
    await this.#bull.end();
  }
}

/** `close()` hangs while Redis is down (measured), so it has a bound, after which the jobs are let go. */
async function closeWorker(worker: Worker, withinMs: number): Promise<void> {
  const timer = new AbortController();
  const graceful = worker.close().then(() => 'closed' as const);
  const bound = sleep(withinMs, 'late' as const, { signal: timer.signal }).catch(() => 'closed' as const);
  const winner = await Promise.race([graceful, bound]);
  timer.abort();
  if (winner === 'late') await worker.close(true);
}

/** BullMQ asks this for the next time of a scheduler; our own function answers (see cron.ts). */
function repeatStrategy(ticks: readonly Tick[]) {
  return (millis: number, options: { pattern?: string; tz?: string }): number | undefined => {
    const tick = ticks.find((known) => known.schedule.cron === options.pattern && known.zone === options.tz);
    const schedule = tick?.schedule ?? {
      cron: options.pattern ?? '',
      gap: 'run-after' as const,
      overlap: 'first' as const,
    };
    const slot = nextSlot(schedule, options.tz ?? 'UTC', millis);
    return slot === undefined ? undefined : Date.parse(slot.nominal);
  };
}

const WORKER_OPTIONS = {
  lockDuration: LOCK_MS,
  stalledInterval: STALLED_MS,
  maxStalledCount: 1,
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 0 },
  runRetryDelay: RECONNECT_MS,
};

// -------------------------------------------------------------------------------------------------- PostgreSQL

async function openPostgres(address: QueueAddress, namespace: string, events: BackendEvents): Promise<Bull> {
  const url = address.url.reveal();
  const pool = new pg.Pool({
    connectionString: url,
    max: 4,
    application_name: 'trueup-queue',
    connectionTimeoutMillis: 5000,
  });
  pool.on('error', events.onError);
  try {
    const client = await pool.connect();
    try {
      await runMigrations(client, POSTGRES_SCHEMA);
    } finally {
      client.release();
    }
  } catch (cause) {
    await pool.end();
    throw unreachable(address, cause);
  }
  const { Queue: PgQueue, Worker: PgWorker } = withBackend(createPostgresBackend);
  const connection = {
    connectionString: url,
    schema: POSTGRES_SCHEMA,
    max: 3,
    application_name: 'trueup-queue',
  };
  const fullName = (name: QueueName) => `trueup-${namespace}-${name}`;
  return {
    kind: 'postgres',
    queue: (name, ticks) =>
      new PgQueue(fullName(name), {
        connection: { ...connection },
        settings: { repeatStrategy: repeatStrategy(ticks) },
      }) as unknown as Queue,
    worker: (name, concurrency, handle) =>
      new PgWorker(fullName(name), async (job) => handle(job.data), {
        connection: { ...connection },
        concurrency,
        settings: { repeatStrategy: repeatStrategy([]) },
        ...WORKER_OPTIONS,
      }) as unknown as Worker,
    exclusive: (fn) => withAdvisoryLock(pool, `ticks:${namespace}`, fn),
    alive: async () => {
      await pool.query('select 1');
      return true;
    },
    end: () => pool.end(),
  };
}

async function withAdvisoryLock<T>(pool: pg.Pool, name: string, fn: () => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [name]);
    const result = await fn();
    await client.query('commit');
    return result;
  } finally {
    // Ends the transaction, and with it the lock, whatever happened.
    client.release(true);
  }
}

// ------------------------------------------------------------------------------------------------------- Redis

async function openRedis(address: QueueAddress, namespace: string, events: BackendEvents): Promise<Bull> {
  const connect = (forWorker: boolean) => redisConnection(address, forWorker, events);
  const producer = connect(false);
  try {
    await producer.connect();
    await refuseEviction(producer, address);
  } catch (cause) {
    producer.disconnect();
    throw cause instanceof TrueupError ? cause : unreachable(address, cause);
  }
  const opened: (Redis | Cluster)[] = [producer];
  // Braces make one hash slot, so that the same names work on a cluster.
  const options = { prefix: `{trueup-${namespace}}`, skipWaitingForReady: true };
  return {
    kind: 'redis',
    queue: (name, ticks) =>
      new Queue(name, {
        ...options,
        connection: producer,
        settings: { repeatStrategy: repeatStrategy(ticks) },
      }),
    worker: (name, concurrency, handle) => {
      const connection = connect(true);
      opened.push(connection);
      return new Worker(name, async (job) => handle(job.data), {
        prefix: options.prefix,
        connection,
        concurrency,
        settings: { repeatStrategy: repeatStrategy([]) },
        ...WORKER_OPTIONS,
      });
    },
    exclusive: (fn) => fn(),
    alive: async () => (await producer.ping()) === 'PONG',
    end: async () => {
      for (const connection of opened) connection.disconnect();
    },
  };
}

/**
 * A producer fails at once while Redis is down (an `add` that waits is applied later, when nobody expects it); a
 * worker waits for ever and reconnects within a second.
 */
function redisConnection(address: QueueAddress, forWorker: boolean, events: BackendEvents): Redis | Cluster {
  const { sentinel, cluster, tls } = address.options;
  const url = new URL(address.url.reveal());
  const common = {
    ...(url.username ? { username: decodeURIComponent(url.username) } : {}),
    ...(url.password ? { password: decodeURIComponent(url.password) } : {}),
    ...(url.protocol === 'rediss:' || tls
      ? { tls: { rejectUnauthorized: tls?.rejectUnauthorized ?? true, ...(tls?.ca ? { ca: tls.ca } : {}) } }
      : {}),
    maxRetriesPerRequest: forWorker ? null : 1,
    enableOfflineQueue: forWorker,
    retryStrategy: (attempt: number) => Math.min(200 * attempt, RECONNECT_MS),
    connectTimeout: 5000,
    lazyConnect: true,
  };
  const connection = cluster
    ? new Cluster(cluster.map(hostAndPort), {
        redisOptions: common,
        lazyConnect: true,
        enableOfflineQueue: forWorker,
      })
    : new Redis({
        ...common,
        ...(sentinel
          ? {
              sentinels: sentinel.hosts.map(hostAndPort),
              name: sentinel.name,
              ...(sentinel.password ? { sentinelPassword: sentinel.password.reveal() } : {}),
            }
          : { host: url.hostname, port: Number(url.port || 6379) }),
        db: Number(url.pathname.slice(1) || 0),
      });
  connection.on('error', events.onError);
  return connection;
}

function hostAndPort(text: string): { host: string; port: number } {
  const colon = text.lastIndexOf(':');
  return { host: text.slice(0, colon), port: Number(text.slice(colon + 1)) };
}

async function refuseEviction(redis: Redis | Cluster, address: QueueAddress): Promise<void> {
  const info = await redis.info('memory');
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction';
  if (policy === 'noeviction') return;
  throw new TrueupError(
    'TRU_QUEUE_EVICTS',
    `Redis ${displayUrl(address.url)} may evict jobs (maxmemory-policy ${policy})`,
    {
      exit: EXIT.usage,
      hint: 'set maxmemory-policy noeviction on this Redis, or give trueup a Redis of its own',
    },
  );
}

function unreachable(address: QueueAddress, cause: unknown): TrueupError {
  const message = cause instanceof Error ? cause.message : String(cause);
  return new TrueupError('TRU_QUEUE_UNREACHABLE', `queue ${displayUrl(address.url)}: ${message}`, {
    exit: EXIT.temporary,
    hint: 'check QUEUE_URL (queue.url), that the server runs, and that this host may reach it',
    cause,
  });
}
