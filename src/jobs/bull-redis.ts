import { Queue, Worker } from 'bullmq';
import { Cluster, Redis } from 'ioredis';
import { displayUrl } from '../config/secret.ts';
import { EXIT, TrueupError } from '../error.ts';
import {
  type BackendEvents,
  type Bull,
  type QueueAddress,
  RECONNECT_MS,
  repeatStrategy,
  unreachable,
  WORKER_OPTIONS,
} from './bull.ts';

export async function openRedis(
  address: QueueAddress,
  namespace: string,
  events: BackendEvents,
): Promise<Bull> {
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
        settings: { repeatStrategy: repeatStrategy(() => []) },
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
