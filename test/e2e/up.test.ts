import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { type Db, openDatabase } from '../../src/store/database.ts';
import { createDatabase, createStore } from '../support/database.ts';
import { start, trueup, trueupJson, up } from '../support/e2e-cli.ts';
import { ordersConfig, writeConfig } from '../support/e2e-config.ts';
import { createOrders, type OrdersDatabase, orders, startBookings } from '../support/e2e-orders.ts';
import { startServer } from '../support/http-server.ts';
import { onPath } from '../support/on-path.ts';
import { redisUrl } from '../support/redis.ts';
import { startRedis } from '../support/redis-server.ts';
import { sparePort } from '../support/spare-port.ts';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const PASSWORD = 'planted-password-4711';

interface Shop {
  readonly data: OrdersDatabase;
  readonly apiUrl: string;
}

async function openShop(): Promise<Shop> {
  const data = await createOrders();
  stops.push(() => data.drop());
  const api = await startBookings(data.pool, { dedupes: true });
  stops.push(() => api.close());
  return { data, apiUrl: api.url };
}

async function configOf(shop: Shop, storeUrl: string, top: object = {}, queueUrl?: string): Promise<string> {
  const file = await writeConfig(
    ordersConfig({
      storeUrl,
      dataUrl: shop.data.url,
      apiUrl: shop.apiUrl,
      read: 'table',
      target: { watermark: 1200, idempotency: { dedupes: true } },
      reconciliation: { schedule: '0 4 1 1 *' },
      top: { ...top },
      ...(queueUrl === undefined ? {} : { queueUrl }),
    }),
  );
  stops.push(() => file.remove());
  return file.path;
}

async function storeOf(make: () => Promise<{ url: string; drop(): Promise<void> }>): Promise<string> {
  const store = await make();
  stops.push(() => store.drop());
  return store.url;
}

function openDb(url: string): Db {
  const db = openDatabase(url, { applicationName: 'trueup-test' });
  stops.push(() => db.destroy());
  return db;
}

describe('trueup up', () => {
  it.each([
    ['SIGTERM', 'PostgreSQL'],
    ['SIGINT', 'Redis'],
  ] as const)('migrates, serves, and on %s drains and ends with 0 (queue on %s)', async (signal, queue) => {
    const shop = await openShop();
    const storeUrl = await storeOf(createDatabase);
    const { child, url } = await up(
      await configOf(shop, storeUrl, {}, queue === 'Redis' ? redisUrl() : undefined),
    );
    stops.push(() => child.stop());
    const alive = await fetch(`${url}/healthz`);
    expect([alive.status, await alive.json()]).toEqual([200, { status: 'alive' }]);
    const ready = await fetch(`${url}/readyz`);
    expect([ready.status, await ready.json()]).toMatchObject([200, { status: 'ready' }]);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toMatch(/^trueup_build_info\{version="/m);
    expect(metrics).toMatch(/^trueup_watermark_per_minute\{target="bookings"\} 1200$/m);

    child.kill(signal);
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(child.lines.filter(({ from }) => from === 'stdout')).toEqual([]);
    expect(await openDb(storeUrl)('worker').select()).toEqual([]);
  });

  it('runs what a command hands to it', async () => {
    const shop = await openShop();
    await shop.data.place(orders('lost', 3));
    const path = await configOf(shop, await storeOf(createDatabase));
    const { child } = await up(path);
    stops.push(() => child.stop());
    const words = ['run', 'orders', '--last', '1h', '--mode', 'compensate', '--config', path];
    const [handed] = await trueupJson<{ run: string }[]>([...words, '--detach']);
    await child.waitForLine(new RegExp(`"event":"run.done","run":"${handed?.run}"`), { timeoutMs: 30_000 });
    // The same window once more: what the server repaired is no difference any more.
    const report = await trueupJson<{ verdict: string }>([
      'run',
      'orders',
      '--last',
      '1h',
      '--mode',
      'compensate',
      '--config',
      path,
    ]);
    expect(['match', 'differ']).toContain(report.verdict);
    expect([...(await shop.data.effects()).values()]).toEqual([1, 1, 1]);
  });

  it('twice at once on one empty store makes one store, one active config and no double effect', async () => {
    const shop = await openShop();
    await shop.data.place(orders('lost', 20));
    const storeUrl = await storeOf(createDatabase);
    const path = await configOf(shop, storeUrl);
    const both = await Promise.all([up(path), up(path)]);
    stops.push(
      ...both.map(
        ({ child }) =>
          () =>
            child.stop(),
      ),
    );
    const ready = await Promise.all(both.map(({ url }) => fetch(`${url}/readyz`)));
    expect(ready.map((response) => response.status)).toEqual([200, 200]);
    const db = openDb(storeUrl);
    expect(await db('config_revision').select('revision')).toHaveLength(1);
    expect(await db('worker').select('id')).toHaveLength(2);
    await trueupJson(['run', 'orders', '--last', '1h', '--mode', 'compensate', '--config', path]);
    const effects = await shop.data.effects();
    expect(effects.size).toBe(20);
    expect(Math.max(...effects.values())).toBe(1);
    for (const { child } of both) child.kill('SIGTERM');
    expect(await Promise.all(both.map(({ child }) => child.exited))).toEqual([
      { code: 0, signal: null },
      { code: 0, signal: null },
    ]);
  });

  it('ends with 75 and a hint when its port is taken, and leaves no worker behind', async () => {
    const shop = await openShop();
    const taken = await startServer((_, response) => response.end());
    stops.push(() => taken.close());
    const storeUrl = await storeOf(createStore);
    const path = await configOf(shop, storeUrl, { http: { port: taken.port } });
    const said = await trueup(['up', '--config', path]);
    expect(said.code).toBe(75);
    expect(said.stderr).toContain(`port ${taken.port} on 127.0.0.1 is in use by another process`);
    expect(said.stderr).toMatch(/stop that process, or set another http.port/);
    expect(await openDb(storeUrl)('worker').select()).toEqual([]);
  });

  it('ends with 75 when the store cannot be reached, says where to look, and hides the password', async () => {
    const shop = await openShop();
    const port = await sparePort();
    const path = await configOf(shop, `postgres://trueup:${PASSWORD}@127.0.0.1:${port}/trueup`);
    const said = await trueup(['up', '--config', path]);
    expect(said).toMatchObject({ code: 75, stdout: '' });
    expect(said.stderr).toContain(`127.0.0.1:${port}`);
    expect(said.stderr).toMatch(/check DATABASE_URL \(store\.url\)/);
    expect(said.stderr).not.toContain(PASSWORD);
  });

  it('ends with 75 when the queue cannot be reached, says where to look, and hides the password', async () => {
    const shop = await openShop();
    const port = await sparePort();
    const queue = `redis://:${PASSWORD}@127.0.0.1:${port}`;
    const path = await configOf(shop, await storeOf(createStore), {}, queue);
    const said = await trueup(['up', '--config', path]);
    expect(said).toMatchObject({ code: 75, stdout: '' });
    expect(said.stderr).toContain(`127.0.0.1:${port}`);
    expect(said.stderr).toMatch(/check QUEUE_URL \(queue\.url\)/);
    expect(said.stderr).not.toContain(PASSWORD);
  });

  it('refuses a Redis that may evict jobs', async () => {
    const program = await onPath('redis-server');
    if (program === undefined)
      throw new Error('this test needs redis-server on PATH, to start one of its own');
    const dir = await mkdtemp(join(tmpdir(), 'trueup-e2e-redis-'));
    stops.push(() => rm(dir, { recursive: true, force: true }));
    const own = await startRedis(program, dir);
    stops.push(() => own.stop());
    const redis = new Redis(own.url);
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    redis.disconnect();
    const shop = await openShop();
    const path = await configOf(shop, await storeOf(createStore), {}, own.url);
    const said = await trueup(['up', '--config', path]);
    expect(said).toMatchObject({ code: 2, stdout: '' });
    expect(said.stderr).toContain('may evict jobs (maxmemory-policy allkeys-lru)');
    expect(said.stderr).toContain('set maxmemory-policy noeviction');
  });

  it('drains on the first Ctrl-C and stops at once on the second; the next one takes up what is left', async () => {
    const shop = await openShop();
    await shop.data.place(orders('lost', 2));
    const storeUrl = await storeOf(createDatabase);
    const path = await configOf(shop, storeUrl);
    const first = start(['up', '--config', path]);
    stops.push(() => first.stop());
    await first.waitForLine(/"event":"up"/, { timeoutMs: 60_000 });
    const words = ['run', 'orders', '--last', '1h', '--mode', 'compensate', '--config', path];
    await trueupJson([...words, '--detach']);
    first.kill('SIGINT');
    await first.waitForLine(/"event":"draining"/);
    first.kill('SIGINT');
    const { code } = await first.exited;
    // It may have been done with draining before the second one came.
    expect([0, 130]).toContain(code);
    await trueupJson(words);
    expect([...(await shop.data.effects()).values()]).toEqual([1, 1]);
  });
});

describe('trueup worker', () => {
  it('refuses a store that nobody has migrated or given a config, and works once somebody has', async () => {
    const shop = await openShop();
    const path = await configOf(shop, await storeOf(createDatabase));
    const refused = await trueup(['worker', '--config', path]);
    expect(refused).toMatchObject({ code: 5, stdout: '', stderr: expect.stringContaining('trueup migrate') });
    const { applied } = await trueupJson<{ applied: string[] }>(['migrate', '--config', path]);
    expect(applied.length).toBeGreaterThan(0);
    expect(await trueupJson(['migrate', '--config', path])).toEqual({ applied: [] });
    const idle = await trueup(['worker', '--config', path]);
    expect(idle).toMatchObject({ stdout: '', stderr: expect.stringContaining('trueup apply') });
    expect(idle.code).not.toBe(0);
    await trueupJson(['apply', '--config', path]);
    const worker = start(['worker', '--config', path]);
    stops.push(() => worker.stop());
    await worker.waitForLine(/"event":"worker.started"/, { timeoutMs: 60_000 });
    worker.kill('SIGTERM');
    expect(await worker.exited).toEqual({ code: 0, signal: null });
  });
});
