import { expect, test } from 'vitest';
import { type AttemptFact, createAttemptSummary } from '../../../src/observe/attempt-summary.ts';
import { createLogger, type LogLevel } from '../../../src/observe/logger.ts';
import { manualClock } from '../../support/manual-clock.ts';

function start(level: LogLevel = 'info') {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  const clock = manualClock();
  const logger = createLogger({ level, redact: (text) => text, destination });
  const summary = createAttemptSummary(logger, clock.millis);
  const parsed = () => lines.map((line) => JSON.parse(line));
  return { summary, clock, lines, parsed };
}

function fact(changes: Partial<AttemptFact> = {}): AttemptFact {
  const ids = { compensation: '5', attempt: 1, traceId: 'a'.repeat(32) };
  return { target: 'gateway', ...ids, result: 'retry', code: 'http-503', ...changes };
}

test('10,000 failing attempts in one minute are fewer than 200 lines, and none is uncounted', () => {
  const { summary, clock, lines, parsed } = start();
  for (let n = 0; n < 10_000; n++) {
    const result = n % 3 === 2 ? 'exhausted' : 'retry';
    summary.record(fact({ compensation: String(n), result, err: new Error(`attempt ${n} failed`) }));
  }
  clock.advance(60_000);
  summary.flush();
  summary.close();
  expect(lines.length).toBeLessThan(200);
  const summaries = parsed().filter(({ event }) => event === 'attempts-summary');
  expect(summaries).toHaveLength(1);
  expect(summaries[0]).toMatchObject({
    level: 'info',
    target: 'gateway',
    retry: 6667,
    exhausted: 3333,
    codes: { 'http-503': 10_000 },
  });
  const told = parsed().filter(({ level }) => level === 'error');
  expect(told.length + summaries[0].untold).toBe(3333);
});

test('10,000 failing attempts at 100 a minute, all with codes of their own, are fewer than 200 lines', () => {
  const { summary, clock, lines } = start();
  for (let n = 0; n < 10_000; n++) {
    summary.record(fact({ result: 'fatal', code: `business-${n}`, err: new Error('refused') }));
    clock.advance(600);
  }
  summary.close();
  expect(lines.length).toBeLessThan(200);
  expect(lines.length).toBeGreaterThan(99);
});

test('a retry is debug, an end is error with its stack, a summary is info', () => {
  const { summary, parsed } = start('debug');
  summary.record(fact());
  summary.record(
    fact({ attempt: 3, result: 'exhausted', err: new Error('gone', { cause: new Error('root') }) }),
  );
  summary.close();
  const [retry, exhausted, counted] = parsed();
  expect(retry).toMatchObject({ level: 'debug', event: 'attempt-retry', compensation: '5' });
  expect(exhausted).toMatchObject({
    level: 'error',
    event: 'attempt-exhausted',
    traceId: 'a'.repeat(32),
    err: { stack: expect.stringContaining('gone'), cause: { message: 'root' } },
  });
  expect(counted).toMatchObject({
    level: 'info',
    event: 'attempts-summary',
    minute: '2026-01-01T00:00:00.000Z',
  });
});

test('an error of a new kind is told although another kind floods the target', () => {
  const { summary, parsed } = start();
  for (let n = 0; n < 1000; n++) summary.record(fact({ result: 'fatal', code: 'http-400' }));
  summary.record(fact({ result: 'fatal', code: 'business-SIGN_ERROR' }));
  summary.close();
  const codes = parsed()
    .filter(({ level }) => level === 'error')
    .map(({ code }) => code);
  expect(codes).toContain('business-SIGN_ERROR');
  // The first ten, the hundredth and the thousandth.
  expect(codes.filter((code) => code === 'http-400')).toHaveLength(12);
});

test('each target and minute has its own summary, written when the minute is over', () => {
  const { summary, clock, parsed } = start();
  summary.record(fact({ result: 'success' }));
  summary.record(fact({ target: 'warehouse' }));
  summary.flush();
  expect(parsed()).toEqual([]);
  clock.advance(60_000);
  summary.record(fact({ result: 'success' }));
  expect(parsed()).toMatchObject([
    { target: 'gateway', success: 1, retry: 0, codes: {} },
    { target: 'warehouse', success: 0, retry: 1, codes: { 'http-503': 1 } },
  ]);
  summary.close();
  expect(parsed()).toHaveLength(3);
});

test('the next hour tells errors whole again', () => {
  const { summary, clock, parsed } = start();
  for (let n = 0; n < 50; n++) summary.record(fact({ result: 'fatal', code: 'http-400' }));
  clock.advance(3_600_000);
  summary.record(fact({ result: 'fatal', code: 'http-400' }));
  summary.close();
  expect(parsed().filter(({ level }) => level === 'error')).toHaveLength(11);
});
