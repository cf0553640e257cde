import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DiffTimeline, readDiffTimeline, type TimelineAttempt } from '../../../src/store/diff-timeline.ts';
import { listDiffs } from '../../../src/store/list-diffs.ts';
import type { RunDetail } from '../../../src/store/list-runs.ts';
import { createStore } from '../../support/database.ts';
import { type RunningApp, startApp } from '../../support/e2e-app.ts';
import { ordersConfig, writeConfig } from '../../support/e2e-config.ts';
import { type BookingCall, createOrders, type Reaction, startBookings } from '../../support/e2e-orders.ts';
import { startServer, type TestServer } from '../../support/http-server.ts';
import { until } from '../../support/wait.ts';

/** Planted where a config holds secrets: none may come out anywhere. */
const SECRETS = {
  SOURCE_PASSWORD: 'planted-source-password-4711',
  API_TOKEN: 'planted-bearer-token-0815',
  API_KEY: 'planted-api-key-2342',
  CHAT_TOKEN: 'planted-chat-token-1337',
};

const TRACES = {
  smooth: '1'.repeat(32),
  retried: '2'.repeat(32),
  cut: '3'.repeat(32),
  refused: '4'.repeat(32),
};
const SAME = ['same-1', 'same-2', 'same-3', 'same-4', 'same-5'];

/** Refuses with an answer that repeats what it was given, as careless servers do. */
function react({ no, nth, headers }: BookingCall): Reaction {
  if (no === 'retried' && nth === 1) return { do: 'answer', status: 500, body: { code: 'TRY_AGAIN' } };
  if (no === 'cut') return { do: 'cut' };
  if (no === 'refused') return { do: 'answer', status: 400, body: { code: 'BAD_SIGN', you: headers } };
  return { do: 'book' };
}

describe('a whole run', () => {
  const stops: (() => Promise<void>)[] = [];
  let running: RunningApp;
  let chat: TestServer;
  let run: RunDetail;
  const timelines = new Map<string, DiffTimeline>();

  beforeAll(async () => {
    const [store, data] = await Promise.all([createStore(), createOrders()]);
    stops.push(
      () => store.drop(),
      () => data.drop(),
    );
    const missing = Object.entries(TRACES).map(([no, traceId]) => ({ no, traceId }));
    await data.place([...missing, ...SAME.map((no) => ({ no })), { no: 'other', amount: '12.50' }]);
    await data.book([...SAME.map((no) => ({ no })), { no: 'other', amount: '13.00' }, { no: 'extra' }]);
    const api = await startBookings(data.pool, { dedupes: true, react });
    stops.push(() => api.close());
    chat = await startServer((_, response) => response.end('{}'));
    stops.push(() => chat.close());
    const source = new URL(data.url);
    source.username = `reader_${randomBytes(8).toString('hex')}`;
    source.password = SECRETS.SOURCE_PASSWORD;
    await data.pool.query(`create role ${source.username} login password '${source.password}';
      grant select on orders to ${source.username}`);
    stops.push(async () => {
      await data.pool.query(`drop owned by ${source.username}; drop role ${source.username}`);
    });
    const env = {
      ...SECRETS,
      SOURCE_URL: source.href,
      API_URL: `${api.url}/?api_key=${SECRETS.API_KEY}`,
      CHAT_URL: `${chat.url}/hooks/${SECRETS.CHAT_TOKEN}`,
    };
    const config = await writeConfig(
      ordersConfig({
        storeUrl: store.url,
        // biome-ignore-start lint/suspicious/noTemplateCurlyInString: the config's own interpolation
        dataUrl: '${env:SOURCE_URL}',
        apiUrl: '${env:API_URL}',
        target: {
          watermark: 6000,
          headers: { Authorization: 'Bearer ${env:API_TOKEN}' },
          idempotency: { dedupes: true },
        },
        reconciliation: { traceId: 'trace_id' },
        top: {
          alerts: { channels: { chat: { type: 'webhook', url: '${env:CHAT_URL}' } }, action: ['chat'] },
        },
        // biome-ignore-end lint/suspicious/noTemplateCurlyInString: the config's own interpolation
      }),
    );
    stops.push(() => config.remove());
    running = await startApp({ configPath: config.path, env, level: 'trace' });
    stops.push(() => running.stop());
    run = await running.reconcile();
    await until('a person was told', () => chat.requests.length > 0, { timeoutMs: 20_000 });
    for (const diff of await listDiffs(running.app.db, {}, { limit: 100 })) {
      const timeline = await readDiffTimeline(running.app.db, diff.id);
      if (timeline !== null) timelines.set(diff.key.join('/'), timeline);
    }
  }, 90_000);
  afterAll(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });

  it('x', () => {
    console.log(JSON.stringify(run, null, 1));
    for (const [k, t] of timelines) console.log(k, JSON.stringify(t, null, 1));
    console.log(running.lines.join(''));
    console.log(JSON.stringify(chat.requests, null, 1));
  });
});
