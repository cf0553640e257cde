import { Redis } from 'ioredis';
import { readMeta } from '../../src/store/meta.ts';
import { redisUrl } from './redis.ts';
import type { Scenario } from './scenario.ts';

/**
 * Takes everything out of this scenario's queue, as FLUSHALL would, but not what is not its own. Returns how many keys
 * or rows went.
 */
export async function flushQueue({ store, backend }: Pick<Scenario, 'store' | 'backend'>): Promise<number> {
  const namespace = `trueup-${(await readMeta(store)).storeId.slice(0, 8)}`;
  return backend === 'redis' ? flushRedis(`{${namespace}}:*`) : flushPostgres(store, `${namespace}-%`);
}

async function flushRedis(pattern: string): Promise<number> {
  const redis = new Redis(redisUrl());
  try {
    let count = 0;
    for await (const keys of redis.scanStream({ match: pattern, count: 1000 }))
      if (keys.length > 0) count += await redis.unlink(...keys);
    return count;
  } finally {
    redis.disconnect();
  }
}

const TABLES = ['job', 'meta', 'event', 'metrics', 'rate_limit', 'dedup', 'dedup_next', 'scheduler'];

async function flushPostgres(store: Scenario['store'], pattern: string): Promise<number> {
  let count = 0;
  for (const table of TABLES) {
    const { rowCount } = await store.raw<{ rowCount: number }>(
      `delete from trueup_queue.${table} where queue like ?`,
      [pattern],
    );
    count += rowCount;
  }
  return count;
}
