import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { expect, test } from 'vitest';
import { createDatabase, createStore } from '../support/database.ts';
import { startServer } from '../support/http-server.ts';
import { onPath } from '../support/on-path.ts';
import { redisUrl } from '../support/redis.ts';
import { startRedis } from '../support/redis-server.ts';
import { until } from '../support/wait.ts';

test('a store has the migrated tables, a database is empty, and both can be dropped while in use', async () => {
  for (const [make, tables] of [
    [createStore, true],
    [createDatabase, false],
  ] as const) {
    const database = await make();
    const client = new pg.Client({ connectionString: database.url });
    client.on('error', () => undefined);
    await client.connect();
    const { rows } = await client.query("select to_regclass('trueup.meta') is not null as found");
    expect(rows).toEqual([{ found: tables }]);
    const ended = new Promise((done) => client.once('end', done));
    await database.drop();
    await ended;
  }
});

test('the HTTP server records a request with its body and lets the handler read it as well', async () => {
  const server = await startServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    response.end(body.toUpperCase());
  });
  const answer = await fetch(`${server.url}/a?b=1`, {
    method: 'POST',
    body: 'hello',
    headers: { 'x-y': 'z' },
  });
  expect(await answer.text()).toBe('HELLO');
  expect(server.requests).toMatchObject([
    { method: 'POST', url: '/a?b=1', body: 'hello', headers: { 'x-y': 'z' } },
  ]);
  await server.close();
});

test('the Redis of the run answers', async () => {
  const redis = new Redis(redisUrl());
  expect(await redis.ping()).toBe('PONG');
  redis.disconnect();
});

const redisServer = await onPath('redis-server');
test.runIf(redisServer !== undefined)(
  'a Redis of its own starts empty, evicts nothing and stops',
  async () => {
    const dir = await mkdtemp(join(tmpdir(), 'trueup-redis-'));
    const server = await startRedis(redisServer ?? '', dir);
    const redis = new Redis(server.url);
    expect(await redis.dbsize()).toBe(0);
    expect(await redis.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction']);
    redis.disconnect();
    await server.stop();
    await rm(dir, { recursive: true });
    const late = new Redis(server.url, { lazyConnect: true, retryStrategy: () => null });
    late.on('error', () => undefined);
    await expect(late.connect()).rejects.toThrow();
  },
);

test('waiting for a condition gives its value, and names it with the last error when it never comes', async () => {
  let asked = 0;
  expect(await until('three', () => (++asked === 3 ? 'yes' : undefined))).toBe('yes');
  const refused = new Error('refused');
  const never = until('the moon is blue', () => Promise.reject(refused), { timeoutMs: 50 });
  await expect(never).rejects.toMatchObject({
    message: expect.stringContaining('the moon is blue'),
    cause: refused,
  });
});
