import type { RequestListener } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { createChannel } from '../../../../src/alert/channels/create.ts';
import { channelSchema } from '../../../../src/config/schema.ts';
import { alertMessage } from '../../../support/alert-message.ts';
import { type RecordedRequest, startServer, type TestServer } from '../../../support/http-server.ts';

const OLD = `whsec_${Buffer.from('old signing key, 24 bytes+').toString('base64')}`;
const NEW = `whsec_${Buffer.from('new signing key, 24 bytes+').toString('base64')}`;
const servers: TestServer[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function receiver(handler: RequestListener) {
  const server = await startServer(handler);
  servers.push(server);
  const config = { type: 'webhook', url: `${server.url}/hook/a-long-path-token`, secrets: [OLD, NEW] };
  return { server, channel: createChannel('ops', channelSchema.parse(config)) };
}

const answering = (status: number, headers: Record<string, string> = {}, body = '') =>
  receiver((_request, response) => response.writeHead(status, headers).end(body));

const send = async (channel: Awaited<ReturnType<typeof answering>>['channel'], timeoutMs = 5000) =>
  channel.send(alertMessage(), AbortSignal.timeout(timeoutMs));

/** The signature by Web Crypto: another implementation than the channel's. */
async function expectedSignature(secret: string, { headers, body }: RecordedRequest): Promise<string> {
  const raw = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const key = await crypto.subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const content = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  const mac = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(content));
  return `v1,${Buffer.from(mac).toString('base64')}`;
}

async function first(requests: readonly RecordedRequest[]): Promise<RecordedRequest> {
  const [request] = requests;
  if (request === undefined) throw new Error('nothing was received');
  return request;
}

test('signs id, time and body with every secret, as a receiver checks it', async () => {
  const { server, channel } = await answering(204);
  expect(await send(channel)).toMatchObject({ sent: true });
  const request = await first(server.requests);
  const signatures = String(request.headers['webhook-signature']).split(' ');
  expect(signatures).toEqual([await expectedSignature(OLD, request), await expectedSignature(NEW, request)]);
  const age = Date.now() / 1000 - Number(request.headers['webhook-timestamp']);
  expect(age).toBeGreaterThanOrEqual(0);
  expect(age).toBeLessThan(60);
  expect(JSON.parse(request.body)).toMatchObject({
    type: 'alert.open',
    data: { count: 12, kind: 'escalated' },
  });
});

test('a retry carries the same webhook-id', async () => {
  const { server, channel } = await answering(500);
  await send(channel);
  await send(channel);
  expect(server.requests.map(({ headers }) => headers['webhook-id'])).toEqual(['msg_0001', 'msg_0001']);
});

test.each([200, 201, 202, 204])('%i is delivered', async (status) => {
  expect(await send((await answering(status)).channel)).toMatchObject({ sent: true });
});

test('a redirect is a failure, and nobody is sent the message there', async () => {
  const { server, channel } = await receiver((request, response) => {
    if (request.url === '/elsewhere') response.end();
    else response.writeHead(302, { location: '/elsewhere' }).end();
  });
  expect(await send(channel)).toMatchObject({ sent: false, permanent: false });
  expect(server.requests).toHaveLength(1);
});

test('410 ends the message for good', async () => {
  expect(await send((await answering(410)).channel)).toMatchObject({ sent: false, permanent: true });
});

test.each([429, 502, 504])('%i slows down, for as long as Retry-After says', async (status) => {
  const asked = await send((await answering(status, { 'retry-after': '120' })).channel);
  expect(asked).toMatchObject({ sent: false, permanent: false, retryAfterMs: 120_000 });
  const unasked = await send((await answering(status)).channel);
  expect(unasked).toMatchObject({ sent: false, retryAfterMs: 30_000 });
});

test.each([400, 401, 500])('%i is a failure with the answer as its reason', async (status) => {
  const { channel } = await answering(status, {}, 'signature of another secret');
  expect(await send(channel)).toMatchObject({
    sent: false,
    reason: `${status}: signature of another secret`,
  });
});

test('a connection that is reset is a failure', async () => {
  const { channel } = await receiver((request) => request.socket.resetAndDestroy());
  const failed = await send(channel);
  expect(failed).toMatchObject({ sent: false, permanent: false, retryAfterMs: null });
  expect(JSON.stringify(failed)).toMatch(/ECONNRESET|UND_ERR_SOCKET/);
});

test('a port where nobody listens is a failure', async () => {
  const { server, channel } = await answering(200);
  await server.close();
  servers.pop();
  expect(await send(channel)).toMatchObject({ sent: false, reason: 'the connection failed (ECONNREFUSED)' });
});

test('a receiver that does not answer, or answers without end, is left in time', async () => {
  const silent = await receiver(() => undefined);
  expect(await send(silent.channel, 150)).toMatchObject({ sent: false, reason: 'no answer in time' });
  const endless = await receiver((_request, response) => response.writeHead(200).write('a'));
  expect(await send(endless.channel, 150)).toMatchObject({ sent: false, reason: 'no answer in time' });
});

test('an answer of many megabytes is not read whole', async () => {
  const { channel } = await receiver((_request, response) => response.end('x'.repeat(20_000_000)));
  const delivered = await send(channel);
  expect(delivered).toMatchObject({ sent: true });
  expect(JSON.stringify(delivered).length).toBeLessThan(1000);
});
