import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { installPackage, onPath } from './on-path.ts';
import { sparePort } from './spare-port.ts';
import { until } from './wait.ts';

export interface RedisServer {
  readonly url: string;
  /** Ends it if it was started here. */
  stop(): Promise<void>;
}

/**
 * A Redis for tests: the one in `TRUEUP_TEST_REDIS_URL`, else the one on port 6379 of this machine, else a
 * `redis-server` started on a spare port without persistence, installed from Debian's packages first when this is
 * root on a Debian without it.
 */
export async function findRedis(dir: string): Promise<RedisServer> {
  const { TRUEUP_TEST_REDIS_URL: given } = process.env;
  for (const url of given ? [given] : ['redis://127.0.0.1:6379'])
    if (await answers(url)) return { url, async stop() {} };
  if (given) throw new Error('no Redis answers at the address in TRUEUP_TEST_REDIS_URL');
  const program = (await onPath('redis-server')) ?? (await installed());
  if (program === undefined)
    throw new Error(
      'the tests need Redis: install redis-server, start one on 127.0.0.1:6379, or set TRUEUP_TEST_REDIS_URL',
    );
  return startRedis(program, dir);
}

/** A Redis of one's own, for a test that stops it or looks at all of it. `program` is a `redis-server`. */
export async function startRedis(program: string, dir: string): Promise<RedisServer> {
  const port = await sparePort();
  const args = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    dir,
    '--save',
    '',
    '--appendonly',
    'no',
  ];
  const child = spawn(program, [...args, '--maxmemory-policy', 'noeviction'], { stdio: 'ignore' });
  const exit = once(child, 'exit');
  const url = `redis://127.0.0.1:${port}`;
  await until(`${program} answers on port ${port}`, () => answers(url));
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      await exit;
    },
  };
}

async function answers(url: string): Promise<boolean> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: 2000 });
  // The failed call below says the same.
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    return (await redis.ping()) === 'PONG';
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}

async function installed(): Promise<string | undefined> {
  return (await installPackage('redis-server')) ? onPath('redis-server') : undefined;
}
