import { DateTime } from 'luxon';
import type { Logger } from './logger.ts';

/** How one attempt ended, as the log tells it. */
export interface AttemptFact {
  readonly target: string;
  readonly compensation: string;
  readonly attempt: number;
  readonly traceId: string;
  /** `success`, `retry` (will be tried again or deferred), or the end: `exhausted`, `fatal`. */
  readonly result: 'success' | 'retry' | 'exhausted' | 'fatal';
  /** A stable word: `http-503`. */
  readonly code: string;
  readonly err?: unknown;
}

interface Minute {
  readonly startMs: number;
  readonly results: Map<AttemptFact['result'], number>;
  readonly codes: Map<string, number>;
  untold: number;
}

interface Hour {
  readonly startMs: number;
  readonly seen: Map<string, number>;
  told: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Of each target and code the first ends of an hour are told whole, then each tenfold one. */
const FIRST = 10;
/** Most whole errors per target and hour; the summaries count the rest. */
const TOLD_PER_HOUR = 30;
const CODES_SHOWN = 5;
const CODES_KEPT = 100;

/**
 * Turns attempts into log lines that a person can read during an outage. A retry is `debug`. An end at a person is
 * `error` with its whole stack, once, as long as the target has not had too many this hour. Per target and minute
 * one `info` line counts everything, with the most frequent codes and how many ends were not told by themselves.
 */
export interface AttemptSummary {
  record(fact: AttemptFact): void;
  /** Writes the summaries of all minutes that are over, as its own timer does. */
  flush(): void;
  /** Writes all summaries and stops the timer. */
  close(): void;
}

/** `nowMs` is the clock, epoch milliseconds; the system's when left out. */
export function createAttemptSummary(logger: Logger, nowMs: () => number = Date.now): AttemptSummary {
  const minutes = new Map<string, Minute>();
  const hours = new Map<string, Hour>();

  const write = (target: string, minute: Minute) => {
    minutes.delete(target);
    logger.info(
      { event: 'attempts-summary', target, ...summaryOf(minute) },
      `attempts to ${target} in one minute`,
    );
  };
  const flushBefore = (startMs: number) => {
    for (const [target, minute] of minutes) if (minute.startMs < startMs) write(target, minute);
  };
  const flush = () => flushBefore(startOf(nowMs(), MINUTE_MS));
  const timer = setInterval(flush, MINUTE_MS / 4);
  timer.unref();

  return {
    record(fact) {
      const now = nowMs();
      flushBefore(startOf(now, MINUTE_MS));
      const minute = minutes.get(fact.target) ?? newMinute(now);
      minutes.set(fact.target, minute);
      add(minute.results, fact.result);
      if (fact.result !== 'success') add(minute.codes, fact.code);
      if (fact.result === 'retry') logger.debug({ event: 'attempt-retry', ...fact });
      if (fact.result !== 'exhausted' && fact.result !== 'fatal') return;
      if (isToldWhole(hours, fact, now)) logger.error({ event: `attempt-${fact.result}`, ...fact });
      else minute.untold += 1;
    },
    flush,
    close() {
      clearInterval(timer);
      flushBefore(Number.POSITIVE_INFINITY);
    },
  };
}

function newMinute(nowMs: number): Minute {
  return { startMs: startOf(nowMs, MINUTE_MS), results: new Map(), codes: new Map(), untold: 0 };
}

function startOf(nowMs: number, unitMs: number): number {
  return Math.floor(nowMs / unitMs) * unitMs;
}

/** Codes come from answers too, so their number has a limit. */
function add<K>(counts: Map<K, number>, key: K): number {
  if (!counts.has(key) && counts.size >= CODES_KEPT) return 0;
  const count = (counts.get(key) ?? 0) + 1;
  counts.set(key, count);
  return count;
}

function isToldWhole(hours: Map<string, Hour>, { target, code }: AttemptFact, nowMs: number): boolean {
  const startMs = startOf(nowMs, HOUR_MS);
  const known = hours.get(target);
  const hour = known?.startMs === startMs ? known : { startMs, seen: new Map<string, number>(), told: 0 };
  hours.set(target, hour);
  const count = add(hour.seen, code);
  if (hour.told >= TOLD_PER_HOUR || count === 0) return false;
  if (count > FIRST && !/^10+$/.test(String(count))) return false;
  hour.told += 1;
  return true;
}

function summaryOf({ startMs, results, codes, untold }: Minute): Record<string, unknown> {
  const frequent = [...codes].sort((a, b) => b[1] - a[1]).slice(0, CODES_SHOWN);
  return {
    minute: DateTime.fromMillis(startMs, { zone: 'utc' }).toISO(),
    success: results.get('success') ?? 0,
    retry: results.get('retry') ?? 0,
    exhausted: results.get('exhausted') ?? 0,
    fatal: results.get('fatal') ?? 0,
    codes: Object.fromEntries(frequent),
    // Ends that have no line of their own.
    untold,
  };
}
