import { afterEach, expect, it } from 'vitest';
import type { Outcome } from '../../../src/compensate/action.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { noteAttempt } from '../../../src/jobs/notes.ts';
import { createAttemptSummary } from '../../../src/observe/attempt-summary.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { instantFromMillis } from '../../../src/reconcile/instant.ts';
import type { Compensation } from '../../../src/store/compensations.ts';
import { openDatabase } from '../../../src/store/database.ts';
import { createStore } from '../../support/database.ts';
import { trueup, up } from '../../support/e2e-cli.ts';
import { ordersConfig, writeConfig } from '../../support/e2e-config.ts';
import { createOrders, orders, startBookings } from '../../support/e2e-orders.ts';
import { until } from '../../support/wait.ts';

const { level } = configSchema.parse({ version: 1, reconciliations: {} }).log;

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const eventsOf = (lines: readonly string[]): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const line of lines) {
    const event = String(JSON.parse(line).event);
    counts.set(event, (counts.get(event) ?? 0) + 1);
  }
  return counts;
};

it('10,000 failing attempts within ten minutes make fewer than 200 lines at the default level', () => {
  const lines: string[] = [];
  const logger = createLogger({
    level,
    redact: (text) => text,
    destination: { write: (line) => lines.push(line) },
  });
  const start = Date.UTC(2026, 10, 30, 2, 30);
  let now = start;
  const summary = createAttemptSummary(logger, () => now);
  stops.push(async () => summary.close());
  const metrics = createMetrics({ version: 'test' });
  for (let index = 0; index < 10_000; index++) {
    now = start + index * 60;
    const fatal = index % 3 === 0;
    noteAttempt(
      {
        compensation: compensation(String(index), index % 2 === 0 ? 'gateway' : 'warehouse'),
        attempt: 1 + (index % 3),
        // A thousand codes, as a careless target makes them, each error with a message and a stack of its own.
        outcome: failed(fatal ? 'fatal' : 'retryable', `business-${index % 1_000}`, index),
        result: fatal || index % 3 === 1 ? 'escalate' : 'retry',
        gateWaitMs: 5,
      },
      { logger, summary, metrics },
    );
  }
  summary.close();

  expect(lines.length).toBeLessThan(200);
  const counts = eventsOf(lines);
  expect(counts.get('attempts-summary')).toBeGreaterThanOrEqual(20);
  expect(counts.get('attempt-fatal')).toBeGreaterThan(0);
  expect(counts.get('attempt-exhausted')).toBeGreaterThan(0);
  // Nothing is lost in the counting: the summaries add up to every attempt.
  const summed = lines
    .map((line) => JSON.parse(line))
    .filter((line) => line.event === 'attempts-summary')
    .reduce((sum, line) => sum + line.retry + line.exhausted + line.fatal, 0);
  expect(summed).toBe(10_000);
});

/** One order in twenty fails three times, few enough for the rate to stay up; the others are refused for good. */
const ORDERS = 400;
const FAILING = 20;
const ATTEMPTS = ORDERS - ORDERS / FAILING + (ORDERS / FAILING) * 3;

it('a worker process whose target fails hundreds of attempts writes far fewer lines', async () => {
  const [store, data] = await Promise.all([createStore(), createOrders()]);
  stops.push(
    () => store.drop(),
    () => data.drop(),
  );
  await data.place(orders('lost', ORDERS));
  const api = await startBookings(data.pool, {
    dedupes: true,
    react: ({ no }) => {
      const number = Number(no.split('-')[1]);
      // A code of its own for each order, as careless targets make them.
      const body = { code: `E${number}`, about: no };
      return { do: 'answer', status: number % FAILING === 0 ? 500 : 400, body };
    },
  });
  stops.push(() => api.close());
  const config = await writeConfig(
    ordersConfig({
      storeUrl: store.url,
      dataUrl: data.url,
      apiUrl: api.url,
      read: 'table',
      target: {
        watermark: 'unlimited',
        concurrency: 32,
        idempotency: { dedupes: true },
        retry: { attempts: 3, wait: { base: '50ms', cap: '100ms' } },
        // Every answer is a failure here, and this is not about the breaker.
        breaker: { consecutive: 10_000, minimum: 10_000 },
      },
    }),
  );
  stops.push(() => config.remove());
  const { child } = await up(config.path);
  stops.push(() => child.stop());
  await trueup([
    'run',
    'orders',
    '--last',
    '1h',
    '--mode',
    'compensate',
    '--detach',
    '--config',
    config.path,
  ]);
  const db = openDatabase(store.url, { applicationName: 'log-volume.test', max: 1 });
  stops.push(() => db.destroy());
  const ended = async () => (await db('compensation').where({ state: 'escalated' })).length === ORDERS;
  await until('every repair is in front of a person', ended, { timeoutMs: 200_000 });
  child.kill('SIGTERM');
  await child.exited;

  const lines = child.lines.map(({ text }) => text);
  const events = eventsOf(lines);
  const summed = lines
    .map((line) => JSON.parse(line))
    .filter((line) => line.event === 'attempts-summary')
    .reduce((sum, line) => sum + line.retry + line.exhausted + line.fatal, 0);
  expect(summed).toBe(ATTEMPTS);
  expect(events.get('attempt-fatal')).toBeGreaterThan(0);
  expect(events.get('attempt-exhausted')).toBeGreaterThan(0);
  expect(lines.length).toBeLessThan(100);
}, 300_000);

function failed(kind: 'fatal' | 'retryable', code: string, index: number): Outcome {
  const message = `request ${index} failed`;
  const error = {
    name: 'Error',
    code: null,
    message,
    stack: `Error: ${message}\n    at send`,
    cause: null,
    errors: [],
  };
  return {
    class: kind,
    code,
    request: null,
    answer: null,
    error,
    retryAfterMs: null,
    durationMs: 12,
    unclassified: false,
  };
}

function compensation(id: string, target: string): Compensation {
  return {
    id,
    diffId: id,
    runWatermark: null,
    runId: '1',
    reconciliation: 'orders',
    repair: 'missing',
    side: 'downstream',
    target,
    orderScope: 'orders',
    key: [id],
    operation: 'create',
    idempotencyKey: id,
    revision: 0,
    fingerprint: 'f',
    payload: { type: 'module', module: 'm', input: null },
    state: 'sending',
    escalation: null,
    escalationDetail: null,
    lastUnknown: false,
    attempts: 0,
    attemptNumber: 1,
    ring: 1,
    traceId: id.padStart(32, '0'),
    firstSentMsAgo: 1,
    lastSentMsAgo: 1,
    undecidedForMs: null,
    notTaken: false,
    endedMsAgo: null,
    unknownForMs: null,
    createdAt: instantFromMillis(0),
  };
}
