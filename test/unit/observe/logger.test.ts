import { describe, expect, test } from 'vitest';
import { createRedactor } from '../../../src/config/redact.ts';
import { Secret } from '../../../src/config/secret.ts';
import { TrueupError } from '../../../src/error.ts';
import { createLogger, type LogLevel } from '../../../src/observe/logger.ts';

const PLAIN = 'planted-secret-0001';
/** Shown escaped in JSON, so a search in the finished line would miss it. */
const AWKWARD = 'pla"nted\\sec\nret\u00e9';

function capture(level: LogLevel = 'info', base?: Record<string, unknown>) {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  const redact = createRedactor([PLAIN, AWKWARD]);
  const logger = createLogger({ level, redact, destination, ...(base ? { base } : {}) });
  return { logger, lines, parsed: () => lines.map((line) => JSON.parse(line)) };
}

describe('createLogger', () => {
  test('writes one JSON line per fact with time, level, event and what belongs to it', () => {
    const { logger, parsed } = capture('info', { version: '0.1.0' });
    logger.child({ run: '12' }).info({ event: 'run-ended', result: 'complete' }, 'run 12 ended');
    expect(parsed()).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        name: 'trueup',
        pid: process.pid,
        version: '0.1.0',
        run: '12',
        event: 'run-ended',
        result: 'complete',
        msg: 'run 12 ended',
      },
    ]);
  });

  test('leaves out what is below its level', () => {
    const { logger, lines } = capture('info');
    logger.debug({ event: 'attempt-retry' });
    expect(lines).toEqual([]);
  });

  test('writes an error with its code, hint, stack and every cause', () => {
    const { logger, parsed } = capture();
    const root = Object.assign(new Error('connect refused'), {
      code: 'ECONNREFUSED',
      request: { huge: true },
    });
    const middle = new AggregateError([root, 'a plain text'], 'all tries failed', { cause: root });
    const err = new TrueupError('TRU_X', 'the store is away', { hint: 'start it', cause: middle });
    logger.error({ event: 'store-lost', err });
    const [line] = parsed();
    expect(line.err).toMatchObject({
      type: 'TrueupError',
      code: 'TRU_X',
      hint: 'start it',
      stack: expect.stringContaining('logger.test.ts'),
      cause: {
        message: 'all tries failed',
        cause: { code: 'ECONNREFUSED' },
        errors: [{ message: 'connect refused' }, { type: 'string', message: 'a plain text' }],
      },
    });
    expect(JSON.stringify(line)).not.toContain('huge');
  });

  test('writes the stored record of an error like the error itself', () => {
    const { logger, parsed } = capture();
    const cause = { name: 'Error', message: 'reset', code: 'ECONNRESET', stack: null, cause: null };
    const err = { name: 'RetryableError', message: 'not sent', code: null, stack: 'at a.ts:1', cause };
    logger.error({ event: 'attempt-exhausted', err });
    expect(parsed()[0].err).toEqual({
      type: 'RetryableError',
      message: 'not sent',
      stack: 'at a.ts:1',
      cause: { type: 'Error', message: 'reset', code: 'ECONNRESET' },
    });
  });

  test('ends a cause chain that is a cycle', () => {
    const { logger, lines } = capture();
    const err = new Error('round');
    err.cause = err;
    logger.error({ event: 'x', err });
    expect(lines).toHaveLength(1);
  });

  test('writes what JSON cannot hold instead of failing', () => {
    const { logger, parsed } = capture();
    logger.info({ event: 'x', count: 12345678901234567890n, err: Object.create(null) });
    logger.info({ event: 'y', err: undefined });
    expect(parsed().map(({ event }) => event)).toEqual(['x', 'y']);
    expect(parsed()[1]).not.toHaveProperty('err');
  });

  test('keeps numbers exact while it redacts', () => {
    const { logger, lines } = capture();
    logger.info({ event: 'x', big: 9007199254740993n, url: `http://h/${PLAIN}` });
    expect(lines[0]).toContain('9007199254740993');
    expect(lines[0]).not.toContain(PLAIN);
  });
});

describe('a planted secret is never printed', () => {
  for (const secret of [PLAIN, AWKWARD]) {
    const paths: Record<string, (logger: ReturnType<typeof capture>['logger']) => void> = {
      'in a message': (logger) => logger.info({ event: 'x' }, `failed: ${secret}`),
      'in a fact': (logger) => logger.info({ event: 'x', url: `http://h/?token=${secret}` }),
      'deep in a fact': (logger) => logger.info({ event: 'x', a: [{ b: { c: [`${secret}!`] } }] }),
      'as the name of a fact': (logger) => logger.info({ event: 'x', headers: { [secret]: 1 } }),
      'in the facts of a child': (logger) => logger.child({ target: secret }).info({ event: 'x' }),
      'in an error, its stack and its cause': (logger) =>
        logger.error({ event: 'x', err: new Error(secret, { cause: new Error(`by ${secret}`) }) }),
      'as a thrown text': (logger) => logger.error({ event: 'x', err: secret }),
      'as a Secret': (logger) => logger.info({ event: 'x', secret: new Secret(secret) }),
    };
    test.each(Object.keys(paths))(`${JSON.stringify(secret)} %s`, (path) => {
      const { logger, lines } = capture('trace');
      paths[path]?.(logger);
      expect(lines).toHaveLength(1);
      const line = lines[0] ?? '';
      expect(stringsIn(JSON.parse(line)).join('\u0000')).not.toContain(secret);
      expect(line).not.toContain(JSON.stringify(secret).slice(1, -1));
      expect(line).toContain('[secret]');
    });
  }
});

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => [name, ...stringsIn(part)]);
}
