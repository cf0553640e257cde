import { expect, test, vi } from 'vitest';
import { addMillis } from '../../src/reconcile/instant.ts';
import { openDatabase, storeClock } from '../../src/store/database.ts';
import { createRun } from '../../src/store/runs.ts';
import { createStore } from '../support/database.ts';
import { start, trueup, up } from '../support/e2e-cli.ts';
import { ordersConfig, writeConfig } from '../support/e2e-config.ts';
import { createOrders, orders, startBookings } from '../support/e2e-orders.ts';
import { startServer } from '../support/http-server.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';

/** Ten times what a test takes on two idle cores. */
vi.setConfig({ testTimeout: 400_000 });

const HOUR_MS = 3_600_000;
/** 20 s for what is in flight, and 2 s to let go of it. */
const BOUND_MS = 22_000;

test('up ends within its bound while a side, a target and a channel hang, and nothing is lost', async ({
  onTestFinished,
}) => {
  const [store, data] = await Promise.all([createStore(), createOrders()]);
  const db = openDatabase(store.url, { applicationName: 'hanging.test', max: 2 });
  const { hostname, port } = new URL(data.url);
  const side = await startProxy({ host: hostname, port: Number(port) });
  const silent = [await startServer(() => undefined), await startServer(() => undefined)] as const;
  const [target, channel] = silent;
  const bookings = await startBookings(data.pool, { dedupes: true });
  const chat = await startServer((_, response) => response.end());
  const configOf = (apiUrl: string, chatUrl: string) =>
    ordersConfig({
      storeUrl: store.url,
      dataUrl: side.url(data.url),
      apiUrl,
      read: 'table',
      target: {
        watermark: 'unlimited',
        idempotency: { dedupes: true },
        timeout: { connect: '1s', answer: '60s' },
        maxSlow: '60s',
      },
      top: {
        alerts: {
          channels: { chat: { type: 'webhook', url: chatUrl } },
          warning: ['chat'],
          action: ['chat'],
        },
      },
    });
  const config = await writeConfig(configOf(target.url, channel.url));
  onTestFinished(async () => {
    await db.destroy();
    for (const server of [target, channel, bookings, chat, side]) await server.close();
    await config.remove();
    await data.drop();
    await store.drop();
  });
  const startRun = async (): Promise<string> => {
    const now = await storeClock(db);
    const window = { from: addMillis(now, -HOUR_MS), to: now };
    const run = { reconciliation: 'orders', revision: null, trigger: 'adhoc', mode: 'compensate' } as const;
    return createRun(db, { ...run, window, movesCoverage: false });
  };

  await data.place(orders('lost', 3));
  const { child } = await up(config.path);
  onTestFinished(() => child.stop());
  await startRun();
  await until('calls and a message hang', () => target.requests.length > 2 && channel.requests.length > 0, {
    timeoutMs: 60_000,
  });
  await side.mode('black-hole');
  const lost = side.lostBytes();
  const unread = await startRun();
  await until('a read hangs', () => side.lostBytes() > lost, { timeoutMs: 60_000 });
  const since = performance.now();
  child.kill('SIGTERM');
  expect(await child.exited).toEqual({ code: 0, signal: null });
  expect(performance.now() - since).toBeLessThan(BOUND_MS);
  expect(await db('worker').pluck('id')).toEqual([]);
  expect((await db('compensation').where({ state: 'sending' })).length, 'calls let go of').toBe(3);
  // Given back: nobody has to wait for its lease.
  expect(await db('run').where({ id: unread }).first('phase', 'lease_owner')).toEqual({
    phase: 'reading',
    lease_owner: null,
  });

  await side.mode('pass');
  await config.write(configOf(bookings.url, chat.url));
  expect((await trueup(['apply', '--config', config.path])).code).toBe(0);
  const next = start(['worker', '--config', config.path]);
  onTestFinished(() => next.stop());
  // As if the minute of their leases had passed.
  await db('compensation').where({ state: 'sending' }).update({ lease_until: db.fn.now() });
  const open = async () => [
    ...(await db('compensation').whereNull('ended_at').pluck('state')),
    ...(await db('run').whereNot({ phase: 'done' }).pluck('phase')),
    ...(await db('alert_message').where({ state: 'waiting' }).pluck('state')),
  ];
  await until('everything has ended', async () => (await open()).length === 0, { timeoutMs: 120_000 });
  expect([...(await data.effects()).values()]).toEqual([1, 1, 1]);
  expect(chat.requests[0]?.headers['webhook-id']).toBe(channel.requests[0]?.headers['webhook-id']);
});
