import type { IncomingMessage, RequestListener } from 'node:http';
import { afterEach, expect, test, vi } from 'vitest';
import type { Channel } from '../../../../src/alert/channel.ts';
import { createChannel } from '../../../../src/alert/channels/create.ts';
import { channelSchema } from '../../../../src/config/schema.ts';
import { alertMessage } from '../../../support/alert-message.ts';
import { startServer, type TestServer } from '../../../support/http-server.ts';

const SECRET = 'SECsigningsecretofarobot0001';
const servers: TestServer[] = [];

afterEach(async () => {
  vi.useRealTimers();
  for (const server of servers.splice(0)) await server.close();
});

async function start(handler: RequestListener, options: Record<string, unknown> = { secret: SECRET }) {
  const server = await startServer(handler);
  servers.push(server);
  const url = `${server.url}/robot/send?access_token=token-of-the-robot-0001`;
  const channel = createChannel('ding', channelSchema.parse({ type: 'dingtalk', url, ...options }));
  return { server, channel };
}

const send = (channel: Channel, message = alertMessage()) => channel.send(message, AbortSignal.timeout(5000));

/** A robot as the provider describes it, with the signature checked by Web Crypto. Errors are 200. */
function robot({ keyword, secret = SECRET }: { keyword?: string; secret?: string } = {}): RequestListener {
  return async (request, response) => {
    const query = new URL(request.url ?? '', 'http://robot').searchParams;
    const body = await textOf(request);
    const answer = (errcode: number, errmsg: string) => response.end(JSON.stringify({ errcode, errmsg }));
    const timestamp = query.get('timestamp') ?? '';
    if (Math.abs(Date.now() - Number(timestamp)) > 3_600_000) return answer(310000, 'invalid timestamp');
    if (query.get('sign') !== (await signatureOf(timestamp, secret))) return answer(310000, 'sign not match');
    if (Buffer.byteLength(body) > 20_000) return answer(460101, 'message too long');
    const { text } = JSON.parse(body);
    if (keyword !== undefined && !text.content.includes(keyword))
      return answer(310000, 'keywords not in content');
    return answer(0, 'ok');
  };
}

async function signatureOf(timestamp: string, secret: string): Promise<string> {
  const utf8 = new TextEncoder();
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', utf8.encode(secret), algorithm, false, ['sign']);
  const mac = await crypto.subtle.sign('HMAC', key, utf8.encode(`${timestamp}\n${secret}`));
  return btoa(String.fromCharCode(...new Uint8Array(mac)));
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of request) text += part;
  return text;
}

test('a robot that checks the signature takes the message', async () => {
  const { server, channel } = await start(robot());
  // A signature of base64 holds + and / about as often as not; each of these must survive the address.
  for (let n = 0; n < 10; n++) expect(await send(channel)).toMatchObject({ sent: true });
  expect(server.requests[0]?.url).toContain('access_token=token-of-the-robot-0001');
  expect(server.requests[0]?.url).not.toContain('%25');
});

test('a channel that is two hours old still signs with the time of the send', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date() });
  const { channel } = await start(robot());
  expect(await send(channel)).toMatchObject({ sent: true });
  vi.setSystemTime(Date.now() + 7_200_000);
  expect(await send(channel)).toMatchObject({ sent: true });
});

test('a wrong signature comes as 200 and is a failure that says so', async () => {
  const { channel } = await start(robot({ secret: 'SECof-another-robot' }));
  expect(await send(channel)).toEqual({
    sent: false,
    permanent: false,
    retryAfterMs: null,
    reason: 'errcode 310000: sign not match',
  });
});

test('a configured keyword is in every message', async () => {
  const { channel } = await start(robot({ keyword: '对账' }), { secret: SECRET, keyword: '对账' });
  expect(await send(channel)).toMatchObject({ sent: true });
  const huge = Array.from({ length: 300 }, (_, n) => ({ key: `"${n}"`, text: '\\'.repeat(300), id: null }));
  expect(await send(channel, alertMessage({ samples: huge }))).toMatchObject({ sent: true });
});

test('too fast waits out the ten minutes of the block', async () => {
  const { channel } = await start((_request, response) =>
    response.end('{"errcode":130101,"errmsg":"send too fast"}'),
  );
  expect(await send(channel)).toMatchObject({ sent: false, permanent: false, retryAfterMs: 600_000 });
});

test.each([
  [200, '<html>portal</html>', "200 with an answer that is not the robot's: <html>portal</html>"],
  [200, '{"success":true}', '200 with an answer that is not the robot\'s: {"success":true}'],
  [503, '{"errcode":0}', '503: {"errcode":0}'],
])('%i with %s is not delivered', async (status, body, reason) => {
  const { channel } = await start((_request, response) => response.writeHead(status).end(body));
  expect(await send(channel)).toMatchObject({ sent: false, reason });
});

test('nobody is called, whatever a key is named', async () => {
  const { server, channel } = await start(robot());
  await send(channel, alertMessage({ samples: [{ key: '@all', text: '@所有人', id: null }] }));
  const body = JSON.parse(server.requests[0]?.body ?? '');
  expect(body.at).toEqual({ isAtAll: false, atMobiles: [] });
  expect(body.text.content).not.toMatch(/@(all|所有人)/);
});
