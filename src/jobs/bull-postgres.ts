import { createPostgresBackend, type Queue, runMigrations, type Worker, withBackend } from 'bullmq';
import pg from 'pg';
import {
  type BackendEvents,
  type Bull,
  type QueueAddress,
  type QueueName,
  repeatStrategy,
  unreachable,
  WORKER_OPTIONS,
} from './bull.ts';

/** Its own schema, so that an application's BullMQ in the same database is not touched. */
const POSTGRES_SCHEMA = 'trueup_queue';

export async function openPostgres(
  address: QueueAddress,
  namespace: string,
  events: BackendEvents,
): Promise<Bull> {
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
