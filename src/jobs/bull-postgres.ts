import {
  PostgresConnection,
  type PostgresConnectionOptions,
  PostgresQueueBackend,
  type Queue,
  type QueueBaseOptions,
  type Worker,
  withBackend,
} from 'bullmq';
import {
  type BackendEvents,
  type Bull,
  type QueueAddress,
  type QueueName,
  repeatStrategy,
  unreachable,
  WORKER_OPTIONS,
} from './bull.ts';
import { within } from './within.ts';

/** Its own schema, so that an application's BullMQ in the same database is not touched. */
const POSTGRES_SCHEMA = 'trueup_queue';
/** One more listens for new jobs. Queries are short, so few serve all queues. */
const CONNECTIONS = 5;
const CLOSE_MS = 500;

/**
 * One pool and one listening connection for all queues and workers of the process. BullMQ gives each of them its own
 * (4 pools of 3 and 4 listeners were 17 connections), and closes it with them; this one ends with the backend.
 */
class SharedConnection extends PostgresConnection {
  readonly #inTurn = new WeakSet<ListenClient>();

  /** Every worker says LISTEN on the one client, and a client runs one query at a time. */
  override async getListenClient(): Promise<ListenClient> {
    const client = await super.getListenClient();
    if (this.#inTurn.has(client)) return client;
    this.#inTurn.add(client);
    const query: ListenClient['query'] = client.query.bind(client);
    let last: Promise<unknown> = Promise.resolve();
    client.query = (text, values) => {
      const next = last.then(() => query(text, values));
      last = next.catch(() => undefined);
      return next;
    };
    return client;
  }

  override async close(): Promise<void> {}

  override async disconnect(): Promise<void> {}

  end(): Promise<void> {
    return super.close();
  }
}

type ListenClient = Awaited<ReturnType<PostgresConnection['getListenClient']>>;
type Client = Awaited<ReturnType<PostgresConnection['pool']['connect']>>;

export async function openPostgres(
  address: QueueAddress,
  namespace: string,
  events: BackendEvents,
): Promise<Bull> {
  const connection = new SharedConnection({
    connectionString: address.url.reveal(),
    schema: POSTGRES_SCHEMA,
    migrate: true,
    max: CONNECTIONS,
    application_name: 'trueup-queue',
    connectionTimeoutMillis: 5000,
  });
  // Each queue and worker of this process listens to it.
  connection.setMaxListeners(0);
  connection.on('error', events.onError);
  try {
    await connection.waitUntilReady();
  } catch (cause) {
    await within(connection.end(), CLOSE_MS);
    throw unreachable(address, cause);
  }
  const { Queue: PgQueue, Worker: PgWorker } = withBackend(
    (name: string, options: QueueBaseOptions<PostgresConnectionOptions>) =>
      new PostgresQueueBackend(connection, name, options, true),
  );
  const fullName = (name: QueueName) => `trueup-${namespace}-${name}`;
  return {
    queue: (name, ticks) =>
      new PgQueue(fullName(name), {
        connection: connection.pool,
        settings: { repeatStrategy: repeatStrategy(ticks) },
      }) as unknown as Queue,
    worker: (name, concurrency, handle) =>
      new PgWorker(fullName(name), async (job) => handle(job.data), {
        connection: connection.pool,
        concurrency,
        settings: { repeatStrategy: repeatStrategy(() => []) },
        ...WORKER_OPTIONS,
      }) as unknown as Worker,
    exclusive: (fn) => withAdvisoryLock(connection, `ticks:${namespace}`, fn),
    alive: async () => {
      await connection.pool.query('select 1');
      return true;
    },
    end: () => connection.end(),
  };
}

async function withAdvisoryLock<T>(
  { pool }: PostgresConnection,
  name: string,
  fn: () => Promise<T>,
): Promise<T> {
  const client: Client = await pool.connect();
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
