import pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { readRun } from '../../../src/store/list-runs.ts';
import { createStore } from '../../support/database.ts';
import { type RunningApp, startApp } from '../../support/e2e-app.ts';
import { ordersConfig, writeConfig } from '../../support/e2e-config.ts';
import { createOrders, type OrdersDatabase, orders, startBookings } from '../../support/e2e-orders.ts';
import { startServer } from '../../support/http-server.ts';
import { startProxy } from '../../support/tcp-proxy.ts';
import { until } from '../../support/wait.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const BOUND_MS = 2_000;
/** What the command promises beyond the bound of its drain. */
const GRACE_MS = 2_000;

/** Statements that wait for a lock in the database that is asked. */
const WAITING = `select from pg_locks
  where not granted and database = (select oid from pg_database where datname = current_database())`;

interface Shop {
  readonly data: OrdersDatabase;
  readonly storeUrl: string;
  start(values: Partial<Parameters<typeof ordersConfig>[0]>): Promise<RunningApp>;
}

async function openShop(): Promise<Shop> {
  const [store, data] = await Promise.all([createStore(), createOrders()]);
  stops.push(
    () => store.drop(),
    () => data.drop(),
  );
  return {
    data,
    storeUrl: store.url,
    async start(values) {
      const config = await writeConfig(
        ordersConfig({
          storeUrl: store.url,
          dataUrl: data.url,
          apiUrl: 'http://127.0.0.1:9/',
          read: 'table',
          target: { watermark: 'unlimited', idempotency: { dedupes: true } },
          ...values,
        }),
      );
      stops.push(() => config.remove());
      return startApp({ configPath: config.path });
    },
  };
}

/** Drains and closes, and says how long that took. */
async function stopped(running: RunningApp, boundMs = BOUND_MS): Promise<number> {
  const since = performance.now();
  await running.stop(boundMs);
  return performance.now() - since;
}

describe('a drain ends within its bound, and nothing is lost,', () => {
  it('when a side hangs for ever in a statement', async () => {
    const shop = await openShop();
    await shop.data.place(orders('lost', 1));
    const lock = await shop.data.pool.connect();
    stops.push(async () => lock.release());
    await lock.query('begin; lock table orders in access exclusive mode');
    const running = await shop.start({ reconciliation: { repair: undefined, mode: 'check' } });
    const run = await running.createRun('check');
    await until('the read hangs', async () => (await lock.query(WAITING)).rowCount === 1);
    expect(await stopped(running)).toBeLessThan(BOUND_MS + GRACE_MS);
    await lock.query('rollback');
    const next = await shop.start({ reconciliation: { repair: undefined, mode: 'check' } });
    stops.push(() => next.stop());
    await until(
      'the next worker has read it',
      async () => (await readRun(next.app.db, run))?.verdict === 'differ',
    );
  });

  it('when a side accepts and never says a word', async () => {
    const shop = await openShop();
    await shop.data.place(orders('lost', 3));
    const api = await startBookings(shop.data.pool, { dedupes: true });
    stops.push(() => api.close());
    const { hostname, port } = new URL(shop.data.url);
    const proxy = await startProxy({ host: hostname, port: Number(port) });
    stops.push(() => proxy.close());
    await proxy.mode('black-hole');
    const values = { dataUrl: proxy.url(shop.data.url), apiUrl: api.url };
    const running = await shop.start(values);
    const run = await running.createRun();
    await until('the read hangs', () => proxy.lostBytes() > 0);
    // Reads are let go of two seconds before the bound, so this one is over before it.
    expect(await stopped(running, 4 * BOUND_MS)).toBeLessThan(4 * BOUND_MS);
    const events = running.lines.map((line) => JSON.parse(line).event);
    expect(events.filter((event) => /^(run|worker)\./.test(event))).toEqual([
      'worker.started',
      'run.given-back',
      'worker.stopped',
    ]);

    // Given back, and so taken up at once: the lease of a lost run would last a minute.
    await proxy.mode('pass');
    const next = await shop.start(values);
    stops.push(() => next.stop());
    const verdict = async () => (await readRun(next.app.db, run))?.verdict;
    await until('the next worker has read it', async () => (await verdict()) === 'differ', {
      timeoutMs: 20_000,
    });
    await until('every order is booked once', async () => (await shop.data.effects()).size === 3);
    expect([...(await shop.data.effects()).values()]).toEqual([1, 1, 1]);
  });

  it('when the store holds a statement of a timer', async () => {
    const shop = await openShop();
    const lock = new pg.Client({ connectionString: shop.storeUrl });
    await lock.connect();
    stops.push(() => lock.end());
    await lock.query('begin; lock table trueup.upkeep in access exclusive mode');
    const running = await shop.start({});
    await until('a timer waits', async () => ((await lock.query(WAITING)).rowCount ?? 0) > 0);
    expect(await stopped(running)).toBeLessThan(BOUND_MS + GRACE_MS);
    expect(running.lines.join()).toContain('"event":"worker.let-go"');
    expect((await lock.query('select from trueup.worker')).rowCount).toBe(0);
  });

  it('when a target hangs', async () => {
    const shop = await openShop();
    await shop.data.place(orders('lost', 2));
    const api = await startServer(() => undefined);
    stops.push(() => api.close());
    const target = {
      watermark: 'unlimited',
      idempotency: { dedupes: true },
      concurrency: 1,
      timeout: { connect: '1s', answer: '60s' },
      maxSlow: '60s',
    };
    const running = await shop.start({ apiUrl: api.url, target });
    await running.createRun();
    await until('a call hangs', () => api.requests.length > 0, { timeoutMs: 20_000 });
    expect(await stopped(running)).toBeLessThan(BOUND_MS + GRACE_MS);

    const good = await startBookings(shop.data.pool, { dedupes: true });
    stops.push(() => good.close());
    const next = await shop.start({ apiUrl: good.url, target });
    stops.push(() => next.stop());
    const { db } = next.app;
    const sending = await db('compensation').where({ state: 'sending' }).pluck('id');
    expect(sending, 'the call that was not answered').toHaveLength(1);
    // As if the lease and the ring of what was let go of had passed.
    await db('compensation').where({ state: 'sending' }).update({ lease_until: db.fn.now() });
    await db('compensation').where({ state: 'queued' }).update({ ring_until: db.fn.now() });
    const open = () => db('compensation').whereNull('ended_at').pluck('state');
    await until('both have ended', async () => (await open()).length === 0, { timeoutMs: 25_000 });
    expect(await db('compensation').pluck('state')).toEqual(['verified', 'verified']);
    expect([...(await shop.data.effects()).values()]).toEqual([1, 1]);
  });

  it('when an alert channel hangs', async () => {
    const shop = await openShop();
    await shop.data.place(orders('lost', 1));
    const silent = await startServer(() => undefined);
    const chat = await startServer((_, response) => response.end());
    stops.push(
      () => silent.close(),
      () => chat.close(),
    );
    const alerts = (url: string) => ({
      top: {
        alerts: { channels: { chat: { type: 'webhook', url } }, warning: ['chat'], action: ['chat'] },
      },
      reconciliation: { mode: 'check', repair: undefined },
    });
    const running = await shop.start(alerts(silent.url));
    await running.createRun('check');
    await until('the channel hangs', () => silent.requests.length > 0, { timeoutMs: 20_000 });
    expect(await stopped(running)).toBeLessThan(BOUND_MS + GRACE_MS);

    const next = await shop.start(alerts(chat.url));
    stops.push(() => next.stop());
    await until('the message is delivered', () => chat.requests.length > 0);
    const id = (server: typeof chat) => server.requests[0]?.headers['webhook-id'];
    expect(id(chat)).toBe(id(silent));
  });
});
