import { afterEach, expect, it } from 'vitest';
import { createRun } from '../../../src/store/runs.ts';
import { createStore } from '../../support/database.ts';
import { startApp } from '../../support/e2e-app.ts';
import { ordersConfig, writeConfig } from '../../support/e2e-config.ts';
import { createOrders, orders } from '../../support/e2e-orders.ts';
import { startServer } from '../../support/http-server.ts';
import { until } from '../../support/wait.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

it('a transaction that outlasts maxHoldback is told to a person, and so is its end', async () => {
  const [store, data] = await Promise.all([createStore(), createOrders()]);
  const chat = await startServer((_, response) => response.end());
  stops.push(
    () => store.drop(),
    () => data.drop(),
    () => chat.close(),
  );
  await data.place(orders('here', 1));
  await data.book(orders('here', 1));
  const config = await writeConfig(
    ordersConfig({
      storeUrl: store.url,
      dataUrl: data.url,
      apiUrl: 'http://127.0.0.1:9/',
      read: 'table',
      reconciliation: {
        mode: 'check',
        repair: undefined,
        window: { lookback: '1h', settle: '0s', maxHoldback: '1ms' },
      },
      top: {
        alerts: { channels: { chat: { type: 'webhook', url: chat.url } }, action: ['chat'] },
      },
    }),
  );
  stops.push(() => config.remove());
  const writer = await data.pool.connect();
  stops.push(async () => writer.release());
  await writer.query('begin; select pg_current_xact_id()');
  const running = await startApp({ configPath: config.path });
  stops.push(() => running.stop());
  const run = async (): Promise<void> => {
    const reconciliation = 'orders';
    const scheduled = { trigger: 'schedule', mode: 'check', window: null, movesCoverage: true } as const;
    const id = await createRun(running.app.db, { reconciliation, revision: null, ...scheduled });
    const phase = async () => (await running.app.db('run').where({ id }).first('phase'))?.phase;
    await until(`run ${id} is done`, async () => (await phase()) === 'done', { timeoutMs: 20_000 });
  };
  const told = () => chat.requests.map(({ body }) => JSON.parse(body).data);

  await run();
  await until('a person was told', () => told().length === 1, { timeoutMs: 20_000 });
  expect(told()[0]).toMatchObject({
    kind: 'holdback-capped',
    severity: 'action',
    status: 'open',
    title: 'orders: a transaction at the source stays open for longer than maxHoldback',
  });
  await writer.query('rollback');
  await run();
  await until('its end was told', () => told().length === 2, { timeoutMs: 20_000 });
  expect(told()[1]).toMatchObject({ kind: 'holdback-capped', status: 'recovered' });
}, 90_000);
