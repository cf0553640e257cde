import type { RequestListener } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import type { Channel } from '../../../../src/alert/channel.ts';
import { createChannel } from '../../../../src/alert/channels/create.ts';
import type { AlertMessage } from '../../../../src/alert/message.ts';
import { channelSchema } from '../../../../src/config/schema.ts';
import { alertMessage } from '../../../support/alert-message.ts';
import { startServer, type TestServer } from '../../../support/http-server.ts';

const servers: TestServer[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function start(handler: RequestListener): Promise<{ server: TestServer; channel: Channel }> {
  const server = await startServer(handler);
  servers.push(server);
  const url = `${server.url}/services/T0001/B0001/token-of-the-webhook-0001`;
  return { server, channel: createChannel('chat', channelSchema.parse({ type: 'slack', url })) };
}

const answering = (status: number, body: string, headers: Record<string, string> = {}) =>
  start((_request, response) => response.writeHead(status, headers).end(body));

const send = (channel: Channel, message: AlertMessage = alertMessage()) =>
  channel.send(message, AbortSignal.timeout(5000));

interface Payload {
  readonly text: string;
  readonly blocks: readonly { readonly text: { readonly text: string; readonly verbatim: boolean } }[];
}

async function received(message: AlertMessage): Promise<Payload> {
  const { server, channel } = await answering(200, 'ok');
  expect(await send(channel, message)).toMatchObject({ sent: true });
  return JSON.parse(server.requests[0]?.body ?? '');
}

test('200 with the body ok is delivered', async () => {
  expect(await send((await answering(200, 'ok')).channel)).toEqual({ sent: true, answer: 'ok' });
});

test.each([
  ['{"ok":false,"error":"channel_not_found"}', 'channel_not_found'],
  ['<html>sign in to the proxy</html>', 'sign in to the proxy'],
  ['', 'empty answer'],
  ['ok\n', '200'],
])('200 with the body %j is not', async (body, reason) => {
  const failed = await send((await answering(200, body)).channel);
  expect(failed).toMatchObject({ sent: false, permanent: false, reason: expect.stringContaining(reason) });
});

test('a refused message is given up, a rate limit is waited for', async () => {
  expect(await send((await answering(400, 'invalid_blocks')).channel)).toMatchObject({ permanent: true });
  expect(await send((await answering(404, 'no_service')).channel)).toMatchObject({ permanent: true });
  const limited = await send((await answering(429, 'rate_limited', { 'retry-after': '7' })).channel);
  expect(limited).toMatchObject({ sent: false, permanent: false, retryAfterMs: 7000 });
  expect(await send((await answering(500, 'rollup_error')).channel)).toMatchObject({ permanent: false });
});

test('a key that is markup pings nobody', async () => {
  const samples = [{ key: '<!channel>', text: '<@U123> & <https://evil.example|click> @here', id: null }];
  const body = await received(alertMessage({ title: '<!everyone>', samples }));
  const texts = [body.text, ...body.blocks.map((block) => block.text.text)].join('\n');
  expect(texts).toContain('&lt;!channel&gt;');
  expect(texts).toContain('&lt;@U123&gt; &amp; &lt;https://evil.example|click&gt;');
  expect(texts).not.toMatch(/<[!@#]/);
  expect(texts).not.toContain('@here');
  expect(body.blocks.every((block) => block.text.verbatim)).toBe(true);
});

test('a long message stays within a section and keeps counts and link', async () => {
  const samples = Array.from({ length: 200 }, (_, n) => ({ key: `O-${n}`, text: '<'.repeat(200), id: null }));
  const body = await received(alertMessage({ samples, title: '&'.repeat(4000) }));
  const [section, link] = body.blocks;
  expect(section?.text.text.length).toBeLessThanOrEqual(3000);
  expect(section?.text.text).toContain('count 12');
  expect(link?.text.text).toBe('<https://trueup.example/|Open the page>');
  expect(body.text.length).toBeLessThanOrEqual(500);
});
