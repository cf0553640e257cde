import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import type { Db } from '../../../src/store/database.ts';
import { createStore } from '../../support/database.ts';
import { startApp } from '../../support/e2e-app.ts';
import { ordersConfig, writeConfig } from '../../support/e2e-config.ts';
import { failOnce, planRepairs } from '../../support/e2e-ledger.ts';
import { createOrders, type Order, orders, startBookings } from '../../support/e2e-orders.ts';
import { until } from '../../support/wait.ts';

const RETRIES = 5_000;
/** Few enough that all of them hang at once also on a busy machine: each does for five seconds. */
const CONCURRENCY = 8;
const MOST_DELAY_MS = 2_000;

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Takes every connection and never says a word. */
async function startHanging(): Promise<{ url: string; open(): number; taken(): number }> {
  const sockets = new Set<Socket>();
  let taken = 0;
  const server = createServer((socket) => {
    taken += 1;
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    socket.resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the hanging target has no port');
  return { url: `http://127.0.0.1:${address.port}`, open: () => sockets.size, taken: () => taken };
}

const keysOf = (placed: readonly Order[]) => placed.map((order) => [order.no]);

// Again when the machine itself, and not the hanging target, was what delayed them.
const options = { timeout: 180_000, retry: 2 };

it(
  '5,000 due retries to a hanging target delay neither a scheduled run nor the sends to another target',
  options,
  async () => {
    const [store, data, hanging] = await Promise.all([createStore(), createOrders(), startHanging()]);
    stops.push(
      () => store.drop(),
      () => data.drop(),
    );
    const api = await startBookings(data.pool, { dedupes: true });
    stops.push(() => api.close());
    const given = ordersConfig({
      storeUrl: store.url,
      dataUrl: data.url,
      apiUrl: api.url,
      read: 'table',
      target: { watermark: 6000, idempotency: { dedupes: true } },
      reconciliation: { schedule: '* * * * *' },
      top: { log: { level: 'warn' } },
    });
    const config = await writeConfig(withStuck(given, hanging.url));
    stops.push(() => config.remove());
    const running = await startApp({ configPath: config.path, keepsSchedules: true, startsWorker: false });
    stops.push(() => running.stop());
    const { app } = running;

    const stuck = orders('stuck', RETRIES);
    await data.place(stuck);
    await failOnce(app, await planRepairs(app, 'stuck', keysOf(stuck)));
    await running.start();
    await until('the hanging target has all it may have', () => hanging.open() >= CONCURRENCY, {
      timeoutMs: 60_000,
    });

    // Three rounds, since the retries come and go: each timeout of five seconds makes room for others.
    const delays: number[] = [];
    for (const round of [1, 2, 3]) {
      const fresh = orders(`fresh${round}`, 5);
      await data.place(fresh);
      const run = await planRepairs(app, 'orders', keysOf(fresh), 'ready');
      await until(
        'the fresh repairs were sent',
        async () => (await sendDelays(app.db, run)).length >= fresh.length,
        { timeoutMs: 30_000 },
      );
      delays.push(...(await sendDelays(app.db, run)));
      const taken = hanging.taken();
      await until('more retries hang', () => hanging.taken() > taken, { timeoutMs: 30_000 });
    }
    expect(Math.max(...delays)).toBeLessThan(MOST_DELAY_MS);

    await until('a scheduled run has ended', async () => (await runDelays(app.db)).length > 0, {
      timeoutMs: 90_000,
    });
    expect(Math.max(...(await runDelays(app.db)))).toBeLessThan(MOST_DELAY_MS);

    // The retries did hang all the while, and most of them still wait for their turn.
    expect(hanging.open()).toBeGreaterThan(0);
    const waiting = await app.db('compensation').where({ target: 'hanging', state: 'retrying' }).count();
    expect(Number(waiting[0]?.['count'])).toBeGreaterThan(RETRIES / 2);
  },
);

/** Milliseconds between the planning of a run's repairs and the start of their sends. */
async function sendDelays(db: Db, run: string): Promise<number[]> {
  const { rows } = await db.raw<{ rows: { ms: number }[] }>(
    `select extract(epoch from a.started_at - c.created_at)::float8 * 1000 as ms
       from compensation c join attempt a on a.compensation_id = c.id and a.started_at is not null
      where c.run_id = ?`,
    [run],
  );
  return rows.map(({ ms }) => ms);
}

/** How late scheduled runs were claimed, and how long they took, in milliseconds. */
async function runDelays(db: Db): Promise<number[]> {
  const { rows } = await db.raw<{ rows: { claim: number; run: number }[] }>(
    `select extract(epoch from s.claimed_at - s.nominal)::float8 * 1000 as claim,
            extract(epoch from r.ended_at - r.created_at)::float8 * 1000 as run
       from slot s join run r on r.id = s.run_id
      where s.reconciliation = 'orders' and r.result = 'complete'`,
  );
  return rows.flatMap(({ claim, run }) => [claim, run]);
}

/** A second reconciliation, whose repairs go to the hanging target without any limit that would hold them back. */
function withStuck(config: Record<string, unknown>, url: string): Record<string, unknown> {
  const { targets, reconciliations } = config as {
    targets: Record<string, object>;
    reconciliations: { orders: Record<string, object> & { repair: { missing: object } } };
  };
  const { orders: pair } = reconciliations;
  const those = (where: string) => ({
    source: { ...pair['source'], where: `order_no ${where}` },
    downstream: { ...pair['downstream'], where: `order_no ${where}` },
  });
  const { schedule: _, ...unscheduled } = pair;
  return {
    ...config,
    targets: {
      ...targets,
      hanging: {
        url,
        watermark: 'unlimited',
        concurrency: CONCURRENCY,
        timeout: { connect: '1s', answer: '5s' },
        idempotency: { dedupes: true },
        // It never opens: nothing but their separation protects the others.
        breaker: { consecutive: 1_000_000, minimum: 1_000_000, ratio: 1 },
      },
    },
    reconciliations: {
      orders: { ...pair, ...those("not like 'stuck%'") },
      stuck: {
        ...unscheduled,
        ...those("like 'stuck%'"),
        repair: { missing: { ...pair.repair.missing, target: 'hanging' } },
      },
    },
  };
}
