import { expect, test } from 'vitest';
import { evaluateHealth } from '../../../src/observe/health.ts';

test('ready when every check is well', () => {
  expect(evaluateHealth({ database: { ok: true }, queue: { ok: true } })).toEqual({
    status: 'ready',
    checks: [
      { name: 'database', ok: true, detail: null },
      { name: 'queue', ok: true, detail: null },
    ],
  });
});

test('one check that is not well is named with its reason', () => {
  const report = evaluateHealth({ database: { ok: true }, queue: { ok: false, detail: 'ECONNREFUSED' } });
  expect(report.status).toBe('not-ready');
  expect(report.checks[1]).toEqual({ name: 'queue', ok: false, detail: 'ECONNREFUSED' });
});

test('a process that checks nothing is not ready', () => {
  expect(evaluateHealth({}).status).toBe('not-ready');
});
