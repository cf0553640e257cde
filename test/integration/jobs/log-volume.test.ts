import { afterEach, expect, it } from 'vitest';
import type { Outcome } from '../../../src/compensate/action.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { noteAttempt } from '../../../src/jobs/notes.ts';
import { createAttemptSummary } from '../../../src/observe/attempt-summary.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { instantFromMillis } from '../../../src/reconcile/instant.ts';
import type { Compensation } from '../../../src/store/compensations.ts';
import { createStore } from '../../support/database.ts';
import { startApp } from '../../support/e2e-app.ts';
import { ordersConfig, writeConfig } from '../../support/e2e-config.ts';
import { createOrders, orders, startBookings } from '../../support/e2e-orders.ts';

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
      summary,
      metrics,
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

it('a worker whose target refuses a hundred repairs writes a handful of lines', async () => {
  const [store, data] = await Promise.all([createStore(), createOrders()]);
  stops.push(
    () => store.drop(),
    () => data.drop(),
  );
  await data.place(orders('lost', 120));
  const api = await startBookings(data.pool, {
    dedupes: true,
    react: ({ no }) => ({ do: 'answer', status: 400, body: { code: 'BAD_SIGN', about: no } }),
  });
  stops.push(() => api.close());
  const config = await writeConfig(
    ordersConfig({
      storeUrl: store.url,
      dataUrl: data.url,
      apiUrl: api.url,
      read: 'table',
      target: { watermark: 'unlimited', concurrency: 64, idempotency: { dedupes: true } },
    }),
  );
  stops.push(() => config.remove());
  const running = await startApp({ configPath: config.path, level });
  stops.push(() => running.stop());
  const run = await running.reconcile({ timeoutMs: 90_000 });
  expect(run.compensations).toMatchObject({ planned: 120, escalated: 120 });
  expect(eventsOf(running.lines).get('attempt-fatal')).toBeGreaterThanOrEqual(10);
  expect(running.lines.length).toBeLessThan(40);
}, 120_000);

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
