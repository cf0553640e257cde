import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type HealthCheck, type HealthServer, startHealthServer } from '../../../src/api/server.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';

const servers: HealthServer[] = [];
const lines: string[] = [];

afterEach(async () => {
  lines.splice(0);
  for (const server of servers.splice(0)) await server.close();
});

async function start(checks: Record<string, HealthCheck> = {}, port = 0): Promise<HealthServer> {
  const destination = { write: (line: string) => lines.push(line) };
  const logger = createLogger({ level: 'info', redact: (text) => text, destination });
  const metrics = createMetrics({ version: '0.1.0' });
  const server = await startHealthServer({ host: '127.0.0.1', port, checks, metrics, logger });
  servers.push(server);
  return server;
}

const well: HealthCheck = async () => ({ ok: true });

test('/healthz answers although the database is away', async () => {
  const { url } = await start({ database: async () => ({ ok: false, detail: 'away' }) });
  const answer = await fetch(`${url}/healthz`);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({ status: 'alive' });
});

test('/readyz is 200 when all is well', async () => {
  const { url } = await start({ database: well, queue: well });
  const answer = await fetch(`${url}/readyz`);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ status: 'ready' });
});

test('/readyz is 503 and says which check is not well, without the text of its error', async () => {
  const refused = Object.assign(new Error('connect postgres://me:pw@db:5432'), { code: 'ECONNREFUSED' });
  const { url } = await start({
    database: () => Promise.reject(refused),
    queue: well,
    draining: async () => ({ ok: false, detail: 'shutting down' }),
  });
  const answer = await fetch(`${url}/readyz`);
  expect(answer.status).toBe(503);
  const text = await answer.text();
  expect(JSON.parse(text)).toEqual({
    status: 'not-ready',
    checks: [
      { name: 'database', ok: false, detail: 'ECONNREFUSED' },
      { name: 'queue', ok: true, detail: null },
      { name: 'draining', ok: false, detail: 'shutting down' },
    ],
  });
  expect(text).not.toContain('pw');
  expect(lines.some((line) => JSON.parse(line).event === 'health-check-failed')).toBe(true);
});

test('/readyz does not wait for a check that hangs', async () => {
  const { url } = await start({ database: () => new Promise(() => undefined), queue: well });
  const answer = await fetch(`${url}/readyz`);
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ checks: [{ detail: 'no answer within 2 s' }, { ok: true }] });
});

test('/metrics is the text that Prometheus reads', async () => {
  const answer = await fetch(`${(await start()).url}/metrics`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toContain('text/plain; version=0.0.4');
  expect(await answer.text()).toContain('trueup_build_info{version="0.1.0"');
});

test('every answer forbids a browser to load, frame, sniff or keep it', async () => {
  const { url } = await start({ database: well });
  for (const path of ['/healthz', '/readyz', '/metrics', '/nothing-here']) {
    const { headers } = await fetch(url + path);
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('cache-control')).toBe('no-store');
  }
});

test('what does not exist is a problem document', async () => {
  const answer = await fetch(`${(await start()).url}/nothing-here`);
  expect(answer.status).toBe(404);
  expect(answer.headers.get('content-type')).toContain('application/problem+json');
  expect(await answer.json()).toMatchObject({ status: 404, title: 'Not Found' });
});

test('a port that is taken is explained and ends the command as temporary', async () => {
  const { url } = await start();
  const port = Number(new URL(url).port);
  await expect(start({}, port)).rejects.toMatchObject({
    code: 'TRU_PORT_IN_USE',
    exit: 75,
    message: `port ${port} on 127.0.0.1 is in use by another process`,
    hint: expect.stringContaining('http.port'),
  });
});

test('close does not wait for a client that keeps its connection', async () => {
  const { url, close } = await start();
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
  await once(socket, 'data');
  servers.pop();
  const ended = once(socket, 'close');
  await close();
  await ended;
});
