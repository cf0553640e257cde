import { describe, expect, test } from 'vitest';
import { createMetrics, type StoreSnapshot, type TargetSnapshot } from '../../../src/observe/metrics.ts';

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A reader of the text format that shares nothing with what writes it. */
function parse(text: string): Sample[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) throw new Error(`not in the text format: ${line}`);
    const [, name = '', labels = '', value = ''] = match;
    const pairs = [...labels.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)];
    const number = value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value);
    return {
      name,
      labels: Object.fromEntries(pairs.map(([, key = '', text = '']) => [key, text])),
      value: number,
    };
  });
}

const calm: TargetSnapshot = {
  target: 'gateway',
  watermark: 100,
  limit: 100,
  breaker: 'closed',
  held: false,
  maxSends: 97,
};
const empty: StoreSnapshot = { diffs: [], compensations: [], coverage: [], targets: [] };

async function shown(snapshot: Partial<StoreSnapshot>, changes: Partial<TargetSnapshot> = {}) {
  const metrics = createMetrics({ version: '0.1.0' });
  metrics.setSnapshot({ ...empty, targets: [{ ...calm, ...changes }], ...snapshot });
  const samples = parse(await metrics.text());
  const value = (name: string, labels: Record<string, string> = { target: 'gateway' }) =>
    samples.find((sample) => sample.name === name && equal(sample.labels, labels))?.value;
  return { metrics, value };
}

function equal(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  return JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());
}

describe('createMetrics', () => {
  test('counts what the process did', async () => {
    const metrics = createMetrics({ version: '0.1.0' });
    metrics.runEnded('orders', 'complete');
    metrics.rowsRead('orders', 'source', 250);
    metrics.rowsRead('orders', 'source', 50);
    metrics.compensationEnded('gateway', 'verified', 2);
    metrics.attemptEnded('gateway', { class: 'accepted', status: 'success_after_retry', number: 2 });
    metrics.alertSent('chat', 'sent');
    metrics.gateWaited('gateway', 'send', 0.6);
    metrics.retrySucceeded('gateway', 4);
    const samples = parse(await metrics.text());
    const attempt = { target: 'gateway', class: 'accepted', status: 'success_after_retry' };
    const waited = { target: 'gateway', purpose: 'send' };
    for (const [name, labels, value] of [
      ['trueup_build_info', { version: '0.1.0', node: process.version }, 1],
      ['trueup_runs_total', { reconciliation: 'orders', result: 'complete' }, 1],
      ['trueup_rows_read_total', { reconciliation: 'orders', side: 'source' }, 300],
      ['trueup_compensations_total', { target: 'gateway', result: 'verified' }, 1],
      ['trueup_attempts_total', attempt, 1],
      ['trueup_alerts_total', { channel: 'chat', result: 'sent' }, 1],
      ['trueup_gate_wait_seconds_count', waited, 1],
      ['trueup_gate_wait_seconds_sum', waited, 0.6],
      ['trueup_gate_wait_seconds_bucket', { ...waited, le: '0.25' }, 0],
      ['trueup_gate_wait_seconds_bucket', { ...waited, le: '1' }, 1],
      ['trueup_retry_latency_seconds_sum', { target: 'gateway' }, 4],
    ] as const) {
      expect(samples).toContainEqual({ name, labels, value });
    }
  });

  test('exports every name that the design gives to the outside', async () => {
    const text = await createMetrics({ version: '0.1.0' }).text();
    const exported = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`);
    expect(exported).toEqual(
      expect.arrayContaining([
        'trueup_coverage_lag_seconds gauge',
        'trueup_proven_lag_seconds gauge',
        'trueup_runs_total counter',
        'trueup_rows_read_total counter',
        'trueup_diffs_open gauge',
        'trueup_diff_age_seconds gauge',
        'trueup_compensations_total counter',
        'trueup_attempts_total counter',
        'trueup_retry_total counter',
        'trueup_retry_success_total counter',
        'trueup_retry_giveup_total counter',
        'trueup_fatal_error_total counter',
        'trueup_attempts_per_compensation histogram',
        'trueup_retry_latency_seconds histogram',
        'trueup_watermark_per_minute gauge',
        'trueup_sends_max_60s gauge',
        'trueup_gate_wait_seconds histogram',
        'trueup_breaker_state gauge',
        'trueup_unknown_outcomes gauge',
        'trueup_alerts_total counter',
        'trueup_backlog gauge',
        'trueup_backlog_seconds_to_zero gauge',
      ]),
    );
  });

  test('two of them in one process share nothing', async () => {
    const one = createMetrics({ version: '1' });
    const other = createMetrics({ version: '2' });
    one.alertSent('chat', 'sent');
    expect(await other.text()).not.toContain('chat');
  });
});

describe('setSnapshot', () => {
  test('shows diffs, coverage and the gate', async () => {
    const { value } = await shown({
      diffs: [
        { reconciliation: 'orders', kind: 'missing', count: 42, oldestSeconds: 600 },
        { reconciliation: 'orders', kind: 'extra', count: 1, oldestSeconds: 900 },
      ],
      coverage: [
        { reconciliation: 'orders', lagSeconds: 31.5, provenLagSeconds: 1200 },
        { reconciliation: 'refunds', lagSeconds: 2, provenLagSeconds: null },
      ],
    });
    expect(value('trueup_diffs_open', { reconciliation: 'orders', kind: 'missing' })).toBe(42);
    expect(value('trueup_coverage_lag_seconds', { reconciliation: 'orders' })).toBe(31.5);
    expect(value('trueup_proven_lag_seconds', { reconciliation: 'orders' })).toBe(1200);
    expect(value('trueup_proven_lag_seconds', { reconciliation: 'refunds' })).toBeUndefined();
    expect(value('trueup_diff_age_seconds', { reconciliation: 'orders' })).toBe(900);
    expect(value('trueup_diff_age_seconds', { reconciliation: 'refunds' })).toBe(0);
    expect(value('trueup_watermark_per_minute')).toBe(100);
    expect(value('trueup_sends_max_60s')).toBe(97);
    expect(value('trueup_replay_held')).toBe(0);
  });

  test('says how long the backlog takes at the rate of now', async () => {
    const compensations = [
      { target: 'gateway', state: 'ready', count: 4000 },
      { target: 'gateway', state: 'planned', count: 213 },
      { target: 'gateway', state: 'unknown', count: 3 },
      { target: 'other', state: 'ready', count: 7 },
    ];
    const { value } = await shown({ compensations });
    expect(value('trueup_backlog')).toBe(4213);
    expect(value('trueup_backlog_seconds_to_zero')).toBeCloseTo(42.13 * 60);
    expect(value('trueup_unknown_outcomes')).toBe(3);
    expect(value('trueup_compensations', { target: 'gateway', state: 'planned' })).toBe(213);
  });

  test('a backlog that nobody sends never ends', async () => {
    const compensations = [{ target: 'gateway', state: 'ready', count: 1 }];
    const held = await shown({ compensations }, { held: true });
    expect(held.value('trueup_backlog_seconds_to_zero')).toBe(Number.POSITIVE_INFINITY);
    const open = await shown({ compensations }, { limit: 0, breaker: 'open' });
    expect(open.value('trueup_backlog_seconds_to_zero')).toBe(Number.POSITIVE_INFINITY);
    const done = await shown({}, { limit: 0, held: true });
    expect(done.value('trueup_backlog_seconds_to_zero')).toBe(0);
  });

  test.each([
    ['closed', 0],
    ['open', 1],
    ['half-open', 2],
    ['ramp', 2],
  ])('a breaker that is %s is %i', async (breaker, expected) => {
    expect((await shown({}, { breaker })).value('trueup_breaker_state')).toBe(expected);
  });

  test('what a later snapshot does not name is gone', async () => {
    const { metrics } = await shown({
      coverage: [{ reconciliation: 'removed', lagSeconds: 1, provenLagSeconds: 1 }],
    });
    metrics.setSnapshot(empty);
    const samples = parse(await metrics.text()).map(({ name }) => name);
    expect(samples).toEqual(['trueup_build_info']);
  });
});
