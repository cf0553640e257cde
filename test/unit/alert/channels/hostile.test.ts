import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { createChannel } from '../../../../src/alert/channels/create.ts';
import { channelSchema } from '../../../../src/config/schema.ts';
import type { AlertMessage } from '../../../../src/store/alert-state.ts';
import { alertMessage } from '../../../support/alert-message.ts';
import { startServer, type TestServer } from '../../../support/http-server.ts';

const servers: TestServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

const TYPES = ['webhook', 'slack', 'dingtalk'] as const;
type Type = (typeof TYPES)[number];

/** What the provider says when it took the message. */
const TAKEN: Readonly<Record<Type, string>> = { webhook: '', slack: 'ok', dingtalk: '{"errcode":0}' };
/** Most bytes of a body that the provider takes. */
const MOST: Readonly<Record<Type, number>> = { webhook: 20_000, slack: 50_000, dingtalk: 20_000 };

async function serve(handler: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = await startServer(handler);
  servers.push(server);
  return server;
}

const send = (type: Type, url: string, message: AlertMessage = alertMessage(), timeoutMs = 5_000) =>
  createChannel('chat', channelSchema.parse({ type, url })).send(message, AbortSignal.timeout(timeoutMs));

/** The body that arrives for a message, as text and parsed. */
async function received(type: Type, message: AlertMessage): Promise<{ bytes: number; texts: string[] }> {
  const server = await serve((_, response) => response.end(TAKEN[type]));
  expect(await send(type, server.url, message)).toMatchObject({ sent: true });
  const body = server.requests[0]?.body ?? '';
  const texts: string[] = [];
  JSON.parse(body, (_, value) => {
    if (typeof value === 'string') texts.push(value);
    return value;
  });
  return { bytes: Buffer.byteLength(body), texts };
}

describe.each(TYPES)('%s', (type) => {
  test('a redirect to another host is a failure, and that host hears nothing', async () => {
    const elsewhere = await serve((_, response) => response.end(TAKEN[type]));
    const server = await serve((_, response) =>
      response.writeHead(302, { location: elsewhere.url }).end(TAKEN[type]),
    );
    expect(await send(type, server.url)).toMatchObject({ sent: false, permanent: false });
    expect(elsewhere.requests).toEqual([]);
  });

  test.each([
    ['an answer that is no answer of anybody', '{"ok":false,"error":"channel_not_found"}'],
    ['a code', '{"errcode":310000,"errmsg":"sign not match"}'],
  ])('200 with %s is a failure', async (_, body) => {
    const server = await serve((_request, response) => response.end(body));
    const failed = await send(type, server.url);
    expect(failed).toMatchObject({ sent: false, permanent: false });
    expect(JSON.stringify(failed)).toMatch(/channel_not_found|sign not match/);
  });

  test('an answer that drips for ever is left in time', async () => {
    const server = await serve((_, response) => {
      const drip = setInterval(() => response.write(' '), 20);
      response.on('close', () => clearInterval(drip));
    });
    expect(await send(type, server.url, alertMessage(), 200)).toMatchObject({
      sent: false,
      permanent: false,
      reason: 'no answer in time',
    });
  });

  test('a message of huge keys, texts and titles stays within what the provider takes', async () => {
    const samples = Array.from({ length: 300 }, (_, n) => ({
      key: `${n}-"\\${'\u0001<&>"😀'.repeat(2_000)}`,
      text: '\\"'.repeat(5_000),
      id: '1',
    }));
    const title = '"\\'.repeat(30_000);
    const { bytes, texts } = await received(type, alertMessage({ samples, title, detail: title }));
    expect(bytes).toBeLessThanOrEqual(MOST[type]);
    expect(texts.length).toBeGreaterThan(0);
  });

  test('a huge key does not hide what is wrong with it', async () => {
    const samples = [{ key: 'K'.repeat(3_000), text: 'http-400 SIGN_ERROR', id: '1' }];
    const { texts } = await received(type, alertMessage({ samples }));
    expect(texts.join('\n')).toContain('http-400 SIGN_ERROR');
  });

  test('nobody is called, no line begins and nothing turns round by a key or a text', async () => {
    const evil = '<!channel> <!here> @all @ALL @所有人 @everyone @channel\n# heading\u2028\r\u202egnp.exe';
    const samples = [{ key: evil, text: evil, id: '1' }];
    const { texts } = await received(type, alertMessage({ samples, title: evil, detail: evil }));
    // A webhook's receiver is a program; what it shows to people is escaped by it.
    if (type === 'slack') expect(texts.join('\n')).not.toMatch(/<[!@#]/);
    expect(texts.filter((text) => /@(all|所有人|everyone|channel)/i.test(text))).toEqual([]);
    expect(texts.filter((text) => /^# heading/m.test(text))).toEqual([]);
    expect(texts.filter((text) => /[\u202e\u2028\r]/.test(text))).toEqual([]);
  });

  test.each(Array.from({ length: 8 }, (_, n) => n))(
    'an emoji at a cut (%i bytes before it) is whole or gone',
    async (before) => {
      const text = 'x'.repeat(before) + '👩‍👩‍👧😀'.repeat(1_000);
      const samples = [{ key: text, text, id: '1' }];
      const { texts } = await received(type, alertMessage({ samples, title: text }));
      expect(
        texts.filter((each) => Buffer.from(each).toString() !== each || each.includes('\ufffd')),
      ).toEqual([]);
    },
  );
});
