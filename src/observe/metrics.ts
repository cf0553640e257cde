import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/**
 * What the store says at one moment, for the gauges. Taken by `storeSnapshot` (store/snapshot.ts); the same for every
 * process, so any of them may be scraped.
 */
export interface StoreSnapshot {
  /** Open and failed ones. */
  readonly diffs: readonly { reconciliation: string; kind: string; count: number; oldestSeconds: number }[];
  /** Those that have not ended. */
  readonly compensations: readonly { target: string; state: string; count: number }[];
  readonly coverage: readonly {
    reconciliation: string;
    lagSeconds: number;
    /** Null where nothing is proven yet. */
    provenLagSeconds: number | null;
  }[];
  readonly targets: readonly TargetSnapshot[];
}

export interface TargetSnapshot {
  readonly target: string;
  /** The most sends a minute that people allow: the ceiling, or an override below it. Null is unlimited. */
  readonly watermark: number | null;
  /** What the gate grants now: breaker, ramp and adaptation included. Null is unlimited. */
  readonly limit: number | null;
  readonly breaker: string;
  readonly held: boolean;
  /** The most sends that started in any 60 s of the last hour. */
  readonly maxSends: number;
}

const PREFIX = 'trueup_';
/** Compensations that still want a send. */
const BACKLOG: ReadonlySet<string> = new Set(['planned', 'held', 'ready', 'queued', 'retrying', 'deferred']);
/** 0 closed, 1 open, 2 half-open: probing, or ramping up again. */
const BREAKER: Readonly<Record<string, number>> = { closed: 0, open: 1 };
const HALF_OPEN = 2;

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * The metrics of DESIGN section 11 in a registry of their own, so that an application that embeds trueup keeps its
 * own. Counters count what this process did; gauges say what the store says (`setSnapshot`). Labels are names from the
 * config and fixed words, never keys.
 */
export function createMetrics({ version }: { version: string }) {
  const registry = new Registry();
  const gauge = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Gauge({ name: PREFIX + name, help, labelNames, registers: [registry] });
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Counter({ name: PREFIX + name, help, labelNames, registers: [registry] });
  const histogram = <L extends string>(name: string, help: string, labelNames: L[], buckets: number[]) =>
    new Histogram({ name: PREFIX + name, help, labelNames, buckets, registers: [registry] });

  gauge('build_info', 'Always 1; the release and the Node.js that runs it', ['version', 'node']).set(
    { version, node: process.version },
    1,
  );
  const runs = counter('runs_total', 'Runs that ended', ['reconciliation', 'result']);
  const rows = counter('rows_read_total', 'Records read', ['reconciliation', 'side']);
  const ended = counter('compensations_total', 'Compensations that ended', ['target', 'result']);
  const attempts = counter('attempts_total', 'Sends by outcome', ['target', 'class', 'status']);
  const retries = counter('retry_total', 'Sends after the first of a compensation', ['target']);
  const retrySuccesses = counter('retry_success_total', 'Sends after the first that the target accepted', [
    'target',
  ]);
  const giveUps = counter('retry_giveup_total', 'Compensations handed to a person with attempts spent', [
    'target',
  ]);
  const fatal = counter('fatal_error_total', 'Sends that the target refused for good', ['target']);
  const attemptsEach = histogram(
    'attempts_per_compensation',
    'Sends that a compensation needed until it ended',
    ['target'],
    [0, 1, 2, 3, 5, 10],
  );
  const retryLatency = histogram(
    'retry_latency_seconds',
    'Time from the first send of a compensation until a later one was accepted',
    ['target'],
    [0.5, 1, 2, 5, 15, 60, 300, 1800, 7200, 86_400],
  );
  const alerts = counter('alerts_total', 'Sends to alert channels', ['channel', 'result']);
  const gateWait = histogram(
    'gate_wait_seconds',
    'Time from asking for a slot to its start',
    ['target', 'purpose'],
    [0.01, 0.05, 0.25, 1, 5, 15, 60, 300],
  );
  const applySnapshot = snapshotGauges(gauge);

  return {
    contentType: registry.contentType,
    /** The text that Prometheus scrapes. */
    text: (): Promise<string> => registry.metrics(),
    runEnded: (reconciliation: string, result: string): void => runs.inc({ reconciliation, result }),
    rowsRead: (reconciliation: string, side: 'source' | 'downstream', count: number): void =>
      rows.inc({ reconciliation, side }, count),
    compensationEnded: (target: string, result: string, attemptsMade: number): void => {
      ended.inc({ target, result });
      attemptsEach.observe({ target }, attemptsMade);
    },
    /** `status`: success, success_after_retry, fail (will go on), abort (went to a person). */
    attemptEnded: (
      target: string,
      attempt: {
        class: string;
        status: 'success' | 'success_after_retry' | 'fail' | 'abort';
        number: number;
      },
    ): void => {
      attempts.inc({ target, class: attempt.class, status: attempt.status });
      if (attempt.number > 1) retries.inc({ target });
      if (attempt.status === 'success_after_retry') retrySuccesses.inc({ target });
      if (attempt.status !== 'abort') return;
      if (attempt.class === 'fatal') fatal.inc({ target });
      else giveUps.inc({ target });
    },
    retrySucceeded: (target: string, seconds: number): void => retryLatency.observe({ target }, seconds),
    alertSent: (channel: string, result: string): void => alerts.inc({ channel, result }),
    gateWaited: (target: string, purpose: 'send' | 'read', waitedSeconds: number): void =>
      gateWait.observe({ target, purpose }, waitedSeconds),
    /** Replaces all gauges at once; what the snapshot does not name is no longer shown. */
    setSnapshot: applySnapshot,
  };
}

type MakeGauge = <L extends string>(name: string, help: string, labelNames: L[]) => Gauge<L>;

function snapshotGauges(gauge: MakeGauge): (snapshot: StoreSnapshot) => void {
  const lag = gauge('coverage_lag_seconds', 'Age of the moment up to which every record was compared', [
    'reconciliation',
  ]);
  const proven = gauge('proven_lag_seconds', 'Age of the moment up to which nothing is open', [
    'reconciliation',
  ]);
  const age = gauge('diff_age_seconds', 'Age of the oldest difference that is open', ['reconciliation']);
  const diffs = gauge('diffs_open', 'Differences that are open', ['reconciliation', 'kind']);
  const compensations = gauge('compensations', 'Compensations that have not ended, by state', [
    'target',
    'state',
  ]);
  const unknown = gauge('unknown_outcomes', 'Sends that nobody knows the outcome of', ['target']);
  const backlog = gauge('backlog', 'Compensations that still want a send', ['target']);
  const toZero = gauge('backlog_seconds_to_zero', 'Time to send the backlog at the current rate', ['target']);
  const watermark = gauge('watermark_per_minute', 'Most sends in any 60 s that people allow', ['target']);
  const limit = gauge('limit_per_minute', 'Most sends in 60 s that the gate grants now', ['target']);
  const maxSends = gauge('sends_max_60s', 'Most sends in any 60 s of the last hour', ['target']);
  const breaker = gauge('breaker_state', '0 closed, 1 open, 2 half-open', ['target']);
  const held = gauge('replay_held', '1 while sends are on hold', ['target']);
  const all: readonly Gauge[] = [
    ...[lag, proven, age, diffs, compensations, unknown, backlog, toZero],
    ...[watermark, limit, maxSends, breaker, held],
  ];

  return (snapshot) => {
    for (const each of all) each.reset();
    for (const { reconciliation, lagSeconds, provenLagSeconds } of snapshot.coverage) {
      lag.set({ reconciliation }, lagSeconds);
      if (provenLagSeconds !== null) proven.set({ reconciliation }, provenLagSeconds);
      // None is open, unless the next loop says otherwise.
      age.set({ reconciliation }, 0);
    }
    const oldest = new Map<string, number>();
    for (const { reconciliation, kind, count, oldestSeconds } of snapshot.diffs) {
      diffs.set({ reconciliation, kind }, count);
      oldest.set(reconciliation, Math.max(oldest.get(reconciliation) ?? 0, oldestSeconds));
    }
    for (const [reconciliation, seconds] of oldest) age.set({ reconciliation }, seconds);
    for (const { target, state, count } of snapshot.compensations)
      compensations.set({ target, state }, count);
    for (const { target, ...status } of snapshot.targets) {
      const waiting = count(snapshot, target, (state) => BACKLOG.has(state));
      backlog.set({ target }, waiting);
      toZero.set({ target }, secondsToZero(waiting, status));
      unknown.set(
        { target },
        count(snapshot, target, (state) => state === 'unknown'),
      );
      watermark.set({ target }, status.watermark ?? Number.POSITIVE_INFINITY);
      limit.set({ target }, status.limit ?? Number.POSITIVE_INFINITY);
      maxSends.set({ target }, status.maxSends);
      breaker.set({ target }, BREAKER[status.breaker] ?? HALF_OPEN);
      held.set({ target }, status.held ? 1 : 0);
    }
  };
}

function count(snapshot: StoreSnapshot, target: string, wanted: (state: string) => boolean): number {
  return snapshot.compensations
    .filter((row) => row.target === target && wanted(row.state))
    .reduce((sum, row) => sum + row.count, 0);
}

/** Infinite while nothing is sent: an open breaker, a hold. */
function secondsToZero(backlog: number, { limit, held }: Pick<TargetSnapshot, 'limit' | 'held'>): number {
  if (backlog === 0) return 0;
  if (held || limit === 0) return Number.POSITIVE_INFINITY;
  return limit === null ? 0 : (backlog / limit) * 60;
}
