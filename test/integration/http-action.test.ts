import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Outcome, Sender } from '../../src/compensate/action.ts';
import { createHttpSender } from '../../src/compensate/actions/http.ts';
import { type Answers, actionSchema } from '../../src/config/schema.ts';
import { startServer, type TestServer } from '../support/http-server.ts';
import { httpPayload, sendContext, targetConfig } from '../support/sending.ts';
import { sparePort } from '../support/spare-port.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(handler: RequestListener): Promise<TestServer> {
  const server = await startServer(handler);
  cleanups.push(() => server.close());
  return server;
}

function answers(input: object = {}): Answers {
  const action = actionSchema.parse({ type: 'http', path: '/', answers: input });
  if (action.type !== 'http') throw new Error('not an http action');
  return action.answers;
}

function sender(
  url: string,
  target: Partial<Parameters<typeof targetConfig>[0]> = {},
  matchers: object = {},
): Sender {
  const created = createHttpSender({
    targetName: 'gateway',
    target: targetConfig({ url, ...target }),
    answers: answers(matchers),
  });
  cleanups.push(() => created.close());
  return created;
}

function reply(status: number, body: unknown = {}, headers: Record<string, string> = {}): RequestListener {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
}

/** A TCP server below HTTP, for everything an HTTP server would not do. */
async function listen(onSocket: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    onSocket(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { port: address.port, url: `http://127.0.0.1:${address.port}`, sockets };
}

const summary = ({ class: outcomeClass, code }: Outcome) => `${outcomeClass} ${code}`;
const send = (to: Sender, payload = httpPayload(), context = sendContext()) => to.send(payload, context);

describe('the request', () => {
  it('carries the idempotency key, the trace and the target headers, and its body unchanged', async () => {
    const server = await serve(reply(200, { ok: true }));
    const outcome = await send(sender(server.url, { headers: { Authorization: 'Bearer s3cr3t-token' } }));
    expect(outcome.class).toBe('accepted');
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]).toMatchObject({ method: 'POST', url: '/orders', body: '{"no":"A-1"}' });
    expect(server.requests[0]?.headers).toMatchObject({
      'idempotency-key': 'orders:A-1:create:2026-11-30',
      traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      'content-type': 'application/json',
      authorization: 'Bearer s3cr3t-token',
    });
  });

  it('writes a key with letters beyond ASCII as its UTF-8 bytes, under the configured header, the same each time', async () => {
    const server = await serve(reply(200));
    const to = sender(server.url, { idempotency: { header: 'X-Request-Key' } });
    const idempotencyKey = 'заказ:订单-1:créer:2026-11-30';
    await send(to, httpPayload(), sendContext({ idempotencyKey }));
    await send(to, httpPayload(), sendContext({ idempotencyKey, attempt: 2 }));
    const seen = server.requests.map(({ headers }) =>
      Buffer.from(String(headers['x-request-key']), 'latin1').toString('utf8'),
    );
    expect(seen).toEqual([idempotencyKey, idempotencyKey]);
  });

  it('cannot have its idempotency key replaced by a payload header of another case', async () => {
    const server = await serve(reply(200));
    await send(sender(server.url), httpPayload({ headers: { 'idempotency-KEY': 'other', 'X-Shop': '7' } }));
    expect(server.requests[0]?.headers).toMatchObject({
      'idempotency-key': 'orders:A-1:create:2026-11-30',
      'x-shop': '7',
    });
  });

  it('joins the path and the query of the target and of the payload', async () => {
    const server = await serve(reply(200));
    const base = server.url.replace('//', '//shop:pa55word-1@');
    await send(
      sender(`${base}/v2/?access_token=t0ken-value`),
      httpPayload({ path: '/orders/ü?dry=1', body: null }),
    );
    expect(server.requests[0]?.url).toBe('/v2/orders/%C3%BC?access_token=t0ken-value&dry=1');
    expect(server.requests[0]?.headers.authorization).toBe(
      `Basic ${Buffer.from('shop:pa55word-1').toString('base64')}`,
    );
    expect(server.requests[0]?.headers).not.toHaveProperty('content-type');
  });

  it.each([
    ['a path that leaves the configured one', httpPayload({ path: '/orders/../admin' }), sendContext()],
    ['a path that leaves it in disguise', httpPayload({ path: '/orders/%2E%2e/admin' }), sendContext()],
    ['a path that would choose the host', httpPayload({ path: '@example.org/' }), sendContext()],
    ['a key with a line break', httpPayload(), sendContext({ idempotencyKey: 'a\r\nx-admin: 1' })],
    ['a header name that is none', httpPayload({ headers: { 'no name': '1' } }), sendContext()],
  ])('is refused for good and not sent: %s', async (_what, payload, context) => {
    const server = await serve(reply(200));
    const outcome = await send(sender(server.url), payload, context);
    expect(outcome.class).toBe('fatal');
    expect(outcome.error).not.toBeNull();
    expect(server.requests).toHaveLength(0);
  });
});

describe('secrets stay out of the outcome', () => {
  it('masks target headers, user and password, and base query, even where an answer repeats them', async () => {
    const server = await serve((request, response) => {
      response.writeHead(403, { 'x-request-id': 'r-1', 'set-cookie': 'session=c00kie-value' });
      response.end(JSON.stringify({ echo: request.headers, url: request.url }));
    });
    const base = server.url.replace('//', '//shop:pa55word-1@');
    const to = sender(`${base}/?access_token=t0ken-value`, { headers: { 'X-Api': 'Bearer s3cr3t-token' } });
    const outcome = await send(to, httpPayload({ path: '/orders?sign=abcdef123456&no=A-1' }));
    const text = JSON.stringify(outcome);
    for (const secret of ['s3cr3t-token', 'pa55word-1', 't0ken-value', 'c00kie-value', 'sign=abcdef123456'])
      expect(text).not.toContain(secret);
    expect(text).not.toContain(Buffer.from('shop:pa55word-1').toString('base64'));
    expect(outcome.request).toMatchObject({
      method: 'POST',
      url: `${server.url}/orders?access_token=[secret]&sign=[secret]&no=A-1`,
      headers: { 'X-Api': '[secret]', 'Idempotency-Key': 'orders:A-1:create:2026-11-30' },
      body: '{"no":"A-1"}',
    });
    expect(outcome.answer).toMatchObject({ status: 403, headers: { 'x-request-id': 'r-1' } });
  });
});

describe('answers', () => {
  it('takes the business code in the body of a 200 over its status', async () => {
    const server = await serve(reply(200, { code: 'SIGN_ERROR' }));
    const fatal = [{ pointer: '/code', in: ['SIGN_ERROR'] }];
    const outcome = await send(sender(server.url, {}, { fatal }));
    expect(outcome).toMatchObject({ class: 'fatal', answer: { status: 200, body: '{"code":"SIGN_ERROR"}' } });
  });

  it('tells "accepted, not final" from done', async () => {
    const server = await serve(reply(202, { state: 'PROCESSING' }));
    const pending = [{ pointer: '/state', in: ['PROCESSING'] }];
    expect((await send(sender(server.url, {}, { pending }))).class).toBe('pending');
  });

  it('is unknown after a 500, unless the target dedupes by key', async () => {
    const server = await serve(reply(500));
    expect((await send(sender(server.url))).class).toBe('unknown');
    const deduping = sender(server.url, { idempotency: { dedupes: true } });
    expect((await send(deduping)).class).toBe('retryable');
  });

  it('blames the target for a 503', async () => {
    const server = await serve(reply(503));
    expect((await send(sender(server.url))).class).toBe('target-down');
  });

  it('reads Retry-After in seconds and, by the clock of the target, as a date', async () => {
    const date = 'Mon, 30 Nov 2026 17:00:00 GMT';
    const server = await serve((request, response) =>
      request.url === '/date'
        ? reply(429, {}, { date, 'retry-after': 'Mon, 30 Nov 2026 17:00:45 GMT' })(request, response)
        : reply(429, {}, { 'retry-after': '30' })(request, response),
    );
    const to = sender(server.url);
    expect(await send(to)).toMatchObject({ class: 'target-down', retryAfterMs: 30_000 });
    expect(await send(to, httpPayload({ path: '/date' }))).toMatchObject({ retryAfterMs: 45_000 });
  });

  it('does not follow a redirect: that would be a second call', async () => {
    const server = await serve(reply(307, {}, { location: '/elsewhere?token=abc' }));
    const outcome = await send(sender(server.url));
    expect(server.requests).toHaveLength(1);
    expect(outcome.class).not.toBe('accepted');
    expect(outcome.answer).toMatchObject({ status: 307, headers: { location: '/elsewhere' } });
  });

  it('keeps 64 KB of a long answer, and goes on after one that is cut off', async () => {
    const server = await serve((request, response) =>
      reply(200, 'x'.repeat(request.url === '/huge' ? 8_000_000 : 300_000))(request, response),
    );
    const to = sender(server.url);
    for (const path of ['/long', '/huge', '/long']) {
      const outcome = await send(to, httpPayload({ path }));
      expect(outcome).toMatchObject({ class: 'accepted', answer: { status: 200, truncated: true } });
      expect(JSON.stringify(outcome.answer).length).toBeLessThan(70_000);
    }
    expect(server.requests).toHaveLength(3);
  });
});

describe('failures before a byte has left', () => {
  it('blames the target when it refuses connections', async () => {
    const outcome = await send(sender(`http://127.0.0.1:${await sparePort()}`));
    expect(summary(outcome)).toBe('target-down ECONNREFUSED');
    expect(outcome.error?.message).toContain('ECONNREFUSED');
    expect(outcome.answer).toBeNull();
  });

  it('blames the target when the connection is not up within the connect timeout', async () => {
    const silent = await listen(() => undefined);
    // The TLS handshake never gets an answer.
    const to = sender(`https://127.0.0.1:${silent.port}`, { timeout: { connect: '150ms' } });
    const outcome = await send(to);
    expect(outcome.class).toBe('target-down');
    expect(outcome.durationMs).toBeGreaterThan(140);
    expect(outcome.durationMs).toBeLessThan(2000);
  });

  it('blames the target when the deadline passes while connecting', async () => {
    const silent = await listen(() => undefined);
    const to = sender(`https://127.0.0.1:${silent.port}`, { timeout: { connect: '10s' } });
    const outcome = await send(to, httpPayload(), sendContext({ signal: AbortSignal.timeout(150) }));
    expect(summary(outcome)).toBe('target-down timeout-before-send');
  });

  it('sends nothing after the deadline', async () => {
    const server = await serve(reply(200));
    const to = sender(server.url);
    await to.warm();
    const outcome = await send(to, httpPayload(), sendContext({ signal: AbortSignal.abort() }));
    expect(summary(outcome)).toBe('target-down timeout-before-send');
    expect((await send(to)).class).toBe('accepted');
    expect(server.requests).toHaveLength(1);
  });
});

describe('failures after bytes may have left', () => {
  it('is unknown when the answer is dropped on the way, and the call was made once', async () => {
    const server = await serve(reply(200));
    const proxy = await startProxy({ host: '127.0.0.1', port: server.port });
    cleanups.push(() => proxy.close());
    await proxy.mode('drop-answers');
    const to = sender(proxy.url(server.url));
    const outcome = await send(to, httpPayload(), sendContext({ signal: AbortSignal.timeout(400) }));
    expect(summary(outcome)).toBe('unknown timeout-after-send');
    expect(server.requests).toHaveLength(1);
  });

  it('is unknown when the answer is slower than the deadline', async () => {
    const server = await serve(() => undefined);
    const to = sender(server.url);
    const outcome = await send(to, httpPayload(), sendContext({ signal: AbortSignal.timeout(200) }));
    expect(summary(outcome)).toBe('unknown timeout-after-send');
    expect(outcome.durationMs).toBeGreaterThan(180);
  });

  it('is unknown when the answer stops half-way, and keeps what arrived', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('{"half":');
    });
    const to = sender(server.url);
    const outcome = await send(to, httpPayload(), sendContext({ signal: AbortSignal.timeout(300) }));
    expect(summary(outcome)).toBe('unknown timeout-after-send');
    expect(outcome.answer).toMatchObject({ status: 200, body: '{"half":' });
  });

  it.each([
    ['resets', (socket: Socket) => socket.resetAndDestroy()],
    ['closes', (socket: Socket) => socket.end()],
    ['answers nonsense', (socket: Socket) => socket.end('this is no HTTP\r\n\r\n')],
    ['cuts the answer', (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf')],
  ])('is unknown, and sent once, when the target reads the request and %s', async (_what, react) => {
    let calls = 0;
    const server = await listen((socket) =>
      socket.once('data', () => {
        calls += 1;
        react(socket);
      }),
    );
    const outcome = await send(sender(server.url));
    expect(outcome.class).toBe('unknown');
    expect(outcome.error).not.toBeNull();
    expect(calls).toBe(1);
  });
});

describe('connections', () => {
  it('are opened ahead, one for each caller that asked, and used by the sends', async () => {
    const server = await listen((socket) =>
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}')),
    );
    const to = sender(server.url);
    await Promise.all([to.warm(), to.warm()]);
    await until('both connections are accepted', () => server.sockets.size === 2);
    const outcomes = await Promise.all([send(to), send(to)]);
    expect(outcomes.map((outcome) => outcome.class)).toEqual(['accepted', 'accepted']);
    await to.warm();
    expect((await send(to)).class).toBe('accepted');
    expect(server.sockets.size).toBe(2);
  });

  it('that the target closed while idle are replaced before anything is sent', async () => {
    let calls = 0;
    const server = await listen((socket) =>
      socket.on('data', () => {
        calls += 1;
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
      }),
    );
    const to = sender(server.url);
    for (const before of [0, 1, 2]) {
      await to.warm();
      await until('a connection is accepted', () => server.sockets.size > before);
      const closed = [...server.sockets].map((socket) => socket.destroyed || once(socket, 'close'));
      for (const socket of server.sockets) socket.end();
      await Promise.all(closed);
      expect((await send(to)).class).toBe('accepted');
    }
    expect(calls).toBe(3);
  });

  it('that cannot be opened ahead are reported by the send, not by the warm-up', async () => {
    const to = sender(`http://127.0.0.1:${await sparePort()}`);
    await expect(to.warm()).resolves.toBeUndefined();
    expect((await send(to)).class).toBe('target-down');
  });
});

describe('a call never connects after its slot (rule 6.14)', () => {
  const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}';

  it('is ready with an open connection, and not when that was lost', async () => {
    const server = await listen((socket) => socket.on('data', () => socket.write(OK)));
    const to = sender(server.url);
    expect(to.ready()).toBe(false);
    await to.warm();
    expect(to.ready()).toBe(true);
    await until('the connection is accepted', () => server.sockets.size === 1);
    for (const socket of server.sockets) socket.end();
    await until('the loss is seen', () => !to.ready());
    await to.warm();
    expect(to.ready()).toBe(true);
    expect((await send(to)).class).toBe('accepted');
    expect(server.sockets.size).toBe(2);
  });

  it('is ready to report that nobody could be reached, without trying once more', async () => {
    const port = await sparePort();
    const to = sender(`http://127.0.0.1:${port}`);
    await to.warm();
    expect(to.ready()).toBe(true);
    let connections = 0;
    const late = createServer(() => {
      connections += 1;
    });
    late.listen(port, '127.0.0.1');
    await once(late, 'listening');
    cleanups.push(async () => {
      late.close();
    });
    expect(summary(await send(to))).toBe('target-down ECONNREFUSED');
    expect(connections).toBe(0);
    await to.warm();
    await until('the connection is accepted', () => connections === 1);
  });

  it('blames a target that takes connections and drops each of them unused', async () => {
    const server = await listen((socket) => socket.end());
    const to = sender(server.url);
    const slots: boolean[] = [];
    for (let slot = 0; slot < 3; slot++) {
      const before = server.sockets.size;
      await to.warm();
      await until(
        'the connection was dropped',
        () => [...server.sockets].length > before && [...server.sockets].every((socket) => socket.destroyed),
      );
      slots.push(to.ready());
    }
    expect(slots).toEqual([false, false, true]);
    expect(summary(await send(to))).toBe('target-down ECONNRESET');
    expect(server.sockets.size).toBe(3);
  });

  it('waits for a connection that is being opened for another caller', async () => {
    const server = await listen((socket) => socket.on('data', () => socket.write(OK)));
    const to = sender(server.url, { concurrency: 1 });
    const first = to.warm();
    await to.warm();
    expect(to.ready()).toBe(true);
    await first;
    expect(server.sockets.size).toBeLessThanOrEqual(1);
  });
});

it('a target without an http address is refused with the setting to change', () => {
  const options = { targetName: 'gateway', answers: answers() };
  expect(() => createHttpSender({ ...options, target: targetConfig({}) })).toThrow(/"gateway" has no url/);
  const postgres = targetConfig({ url: 'postgres://u:hidden@db/x' });
  expect(() => createHttpSender({ ...options, target: postgres })).toThrow(
    /postgres:\/\/db\/x; an http action/,
  );
});
