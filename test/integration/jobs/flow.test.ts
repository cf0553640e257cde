import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VERSION } from '../../../src/app.ts';
import {
  type DiffTimeline,
  readDiffTimeline,
  type TimelineAttempt,
} from '../../../src/store/diff-timeline.ts';
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
/** The lines about each repair, in order; each carries the record's trace id. */
const STAGES = {
  smooth: ['debug compensation.planned', 'debug compensation.sent', 'debug compensation.verified'],
  retried: [
    'debug compensation.planned',
    'debug attempt-retry',
    'debug compensation.sent',
    'debug compensation.verified',
  ],
  cut: ['debug compensation.planned', 'debug attempt-retry', 'debug compensation.verified'],
  refused: ['debug compensation.planned', 'error attempt-fatal'],
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
          timeout: { connect: '2s', answer: '10s' },
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

  const timelineOf = (no: string): DiffTimeline => {
    const found = timelines.get(no);
    if (found === undefined) throw new Error(`there is no diff of ${no}`);
    return found;
  };
  const attemptsOf = (no: string): TimelineAttempt[] =>
    sentTimeline(timelineOf(no)).flatMap((entry) => (entry.entry === 'attempt' ? [entry] : []));

  it('counts every record once', () => {
    expect(run).toMatchObject({
      phase: 'done',
      result: 'complete',
      verdict: 'differ',
      counts: {
        source: 10,
        downstream: 7,
        matched: 5,
        missing: 4,
        extra: 1,
        mismatched: 1,
        duplicate: 0,
        healed: 0,
        undecided: 0,
      },
      compensations: { planned: 4, open: 0, verified: 3, healed: 0, escalated: 1 },
    });
    expect([...timelines.keys()].sort()).toEqual(['cut', 'extra', 'other', 'refused', 'retried', 'smooth']);
  });

  it('leaves each diff in the state that its repair came to', () => {
    const states = [...timelines].map(([no, { diff }]) => [no, diff.state, diff.compensation?.state ?? null]);
    expect(states.sort()).toEqual([
      ['cut', 'verified', 'verified'],
      ['extra', 'open', null],
      ['other', 'open', null],
      ['refused', 'open', 'escalated'],
      ['retried', 'verified', 'verified'],
      ['smooth', 'verified', 'verified'],
    ]);
    expect(timelineOf('other').diff.fields).toMatchObject([
      {
        field: 'amount',
        rule: 'decimal',
        source: { type: 'decimal', text: '12.5' },
        downstream: { type: 'decimal', text: '13' },
      },
    ]);
    expect(timelineOf('refused').compensations).toMatchObject([
      { escalation: 'refused', detail: 'the target refused it: http-400' },
    ]);
  });

  it('tells in order what happened to a diff', () => {
    const told = (no: string) =>
      sentTimeline(timelineOf(no)).map((entry) =>
        entry.entry === 'attempt' ? `attempt ${entry.outcome}` : entryName(entry),
      );
    const planned = ['opened', 'planned', 'planned'];
    expect(told('smooth')).toEqual([...planned, 'attempt accepted', 'accepted', 'verified']);
    expect(told('retried')).toEqual([
      ...planned,
      'attempt retryable',
      'retry',
      'attempt accepted',
      'accepted',
      'verified',
    ]);
    // What a cut connection left open, a look settled: nothing was sent twice.
    expect(told('cut')).toEqual([...planned, 'attempt unknown', 'ambiguous', 'verified']);
    expect(told('refused')).toEqual([...planned, 'attempt fatal', 'escalated']);
    expect(told('other')).toEqual(['opened', 'not-planned']);
  });

  it('keeps of each failed attempt the request, the answer, the error and the state of the system then', () => {
    const system = {
      breaker: 'closed',
      limit: 6000,
      inFlight: expect.any(Number),
      backlog: expect.any(Number),
      version: VERSION,
      worker: running.app.workerId,
    };
    const request = (no: string) => ({
      method: 'POST',
      body: `{"order_no":"${no}","amount":"12.5"}`,
      headers: { 'Idempotency-Key': expect.stringMatching(new RegExp(`^orders:${no}:missing:`)) },
    });
    expect(attemptsOf('retried')[0]).toMatchObject({
      request: request('retried'),
      answer: { status: 500, body: '{"code":"TRY_AGAIN"}' },
      error: null,
      code: 'http-500',
      system: { ...system, decision: 'retry' },
    });
    expect(attemptsOf('refused')[0]).toMatchObject({
      request: request('refused'),
      answer: { status: 400, body: expect.stringContaining('BAD_SIGN') },
      system: { ...system, decision: 'escalate' },
    });
    const [cut] = attemptsOf('cut');
    expect(cut).toMatchObject({
      request: request('cut'),
      answer: null,
      system: { ...system, decision: 'ambiguous' },
    });
    expect(cut?.error?.stack).toMatch(/other side closed\n +at /);
    // Itself, at least, was on its way.
    expect(cut?.system).toHaveProperty(
      'inFlight',
      expect.toSatisfy((count) => count >= 1),
    );
  });

  it('lets the trace id of the record follow it through the ledger, over the wire and through every log line', () => {
    for (const [no, traceId] of Object.entries(TRACES)) {
      const { diff, compensations } = timelineOf(no);
      expect([diff.traceId, ...compensations.map((each) => each.traceId)]).toEqual([traceId, traceId]);
      for (const attempt of attemptsOf(no)) {
        expect(attempt.request).toMatchObject({
          headers: { traceparent: expect.stringMatching(new RegExp(`^00-${traceId}-`)) },
        });
      }
      const ids = new Set(compensations.map((each) => each.id));
      const about = lines().filter((line) => ids.has(String(line['compensation'])));
      expect(new Set(about.map((line) => line['traceId']))).toEqual(new Set([traceId]));
      const stages = about.map((line) => [line['level'], line['event']]);
      expect(stages).toEqual(STAGES[no as keyof typeof TRACES].map((stage) => stage.split(' ')));
    }
    const [planned] = lines().filter((line) => line['event'] === 'compensation.planned');
    expect(planned).toMatchObject({
      run: run.id,
      reconciliation: 'orders',
      target: 'bookings',
      repair: 'missing',
    });
    expect(planned).toMatchObject({ diff: expect.any(String), compensation: expect.any(String) });
  });

  it('measures how long calls waited for their gates, and how long a retry took', async () => {
    const text = await running.app.metrics.text();
    const value = (name: string) =>
      Number(new RegExp(`^${name.replace(/[{}]/g, '\\$&')} (\\S+)$`, 'm').exec(text)?.[1]);
    expect(value('trueup_gate_wait_seconds_count{target="bookings",purpose="send"}')).toBeGreaterThanOrEqual(
      4,
    );
    expect(value('trueup_gate_wait_seconds_count{target="bookings",purpose="read"}')).toBeGreaterThanOrEqual(
      2,
    );
    expect(value('trueup_retry_latency_seconds_count{target="bookings"}')).toBe(1);
    // The pause before the retry is half a second, a fifth less at the least.
    expect(value('trueup_retry_latency_seconds_sum{target="bookings"}')).toBeGreaterThan(0.4);
  });

  it('names an event in every line of the log', () => {
    expect(lines().filter((line) => typeof line['event'] !== 'string')).toEqual([]);
  });

  it.each(Object.entries(SECRETS))('shows %s nowhere', async (_, secret) => {
    expect(await traces(secret)).toEqual([]);
  });

  it('finds a secret where there is one, so that the search above means something', async () => {
    expect(await traces(TRACES.retried)).toEqual(
      expect.arrayContaining(['log', 'diff', 'attempt', 'compensation']),
    );
    expect(await traces('BAD_SIGN')).toEqual(expect.arrayContaining(['attempt', 'alert_message', 'chat']));
  });

  const lines = (): Record<string, unknown>[] => running.lines.map((line) => JSON.parse(line));

  /** Everything that outlives the run and holds this text. */
  async function traces(text: string): Promise<string[]> {
    const { db } = running.app;
    const { rows } = await db.raw<{ rows: { name: string }[] }>(
      `select table_name as name from information_schema.tables where table_schema = 'trueup' order by 1`,
    );
    const found = running.lines.some((line) => line.includes(text)) ? ['log'] : [];
    // The address of a channel is where its secret belongs.
    if (chat.requests.some(({ headers, body }) => JSON.stringify([headers, body]).includes(text)))
      found.push('chat');
    expect(rows.length).toBeGreaterThan(10);
    for (const { name } of rows) {
      const hits = await db.raw<{ rows: unknown[] }>(
        `select from trueup.${name} as whole where strpos(whole::text, ?) > 0 limit 1`,
        [text],
      );
      if (hits.rows.length > 0) found.push(name);
    }
    return found;
  }
});

/** Without the attempts whose slot a busy machine let pass: nothing was sent by them. */
function sentTimeline({ timeline }: DiffTimeline): DiffTimeline['timeline'] {
  return timeline.filter((entry) => entry.entry !== 'attempt' || entry.outcome !== 'not-sent');
}

function entryName(entry: Exclude<DiffTimeline['timeline'][number], TimelineAttempt>): string {
  return entry.entry === 'planned' ? 'planned' : entry.event;
}
