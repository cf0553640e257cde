import type { RequestListener } from 'node:http';
import { inspect } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import { createChannel } from '../../../../src/alert/channels/create.ts';
import { channelSchema } from '../../../../src/config/schema.ts';
import { alertMessage } from '../../../support/alert-message.ts';
import { startServer, type TestServer } from '../../../support/http-server.ts';

const TOKEN = 'planted-token-of-24-chars';
const SIGNING = `whsec_${Buffer.from('planted signing key of 32 bytes!').toString('base64')}`;
const HEADER = 'planted-header-value';
const servers: TestServer[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

const CONFIGS = {
  webhook: (url: string) => ({
    type: 'webhook',
    url: `${url}/hooks/${TOKEN}`,
    secrets: [SIGNING],
    headers: { authorization: HEADER },
  }),
  slack: (url: string) => ({ type: 'slack', url: `${url}/services/${TOKEN}` }),
  dingtalk: (url: string) => ({
    type: 'dingtalk',
    url: `${url}/robot/send?access_token=${TOKEN}`,
    secret: SIGNING,
  }),
};

/** Answers with everything it was sent, as error pages of proxies and frameworks do, and with its own secret. */
const echo = (status: number): RequestListener => {
  return (request, response) => {
    const all = { url: request.url, escaped: request.url?.replaceAll('/', '\\/'), headers: request.headers };
    const signed = request.url?.includes('sign=') || request.headers['webhook-signature'] !== undefined;
    response.writeHead(status).end(`${JSON.stringify(all)} ${signed ? SIGNING : ''}`);
  };
};

const PATHS: Record<string, RequestListener> = {
  'an answer of 200 that echoes the request': echo(200),
  'an answer of 400 that echoes the request': echo(400),
  'an answer of 500 that echoes the request': echo(500),
  'a connection that is reset': (request) => request.socket.resetAndDestroy(),
  'no answer in time': () => undefined,
};

describe.each(Object.keys(CONFIGS) as (keyof typeof CONFIGS)[])('the %s channel', (type) => {
  test.each(Object.keys(PATHS))('tells no address, token or secret after %s', async (path) => {
    const server = await startServer(PATHS[path] ?? echo(500));
    servers.push(server);
    const channel = createChannel('ops', channelSchema.parse(CONFIGS[type](server.url)));
    const delivered = await channel.send(alertMessage(), AbortSignal.timeout(300));
    expectNoSecret(inspect(delivered, { depth: 9 }));
    expectNoSecret(inspect(channel, { depth: 9 }));
    expect(server.requests).toHaveLength(1);
  });

  test.each(['http://127.0.0.1:1', 'http://no-such-host.invalid', 'no address at all'])(
    'tells none when %s cannot be called',
    async (url) => {
      const channel = createChannel('ops', channelSchema.parse(CONFIGS[type](url)));
      const delivered = await channel.send(alertMessage(), AbortSignal.timeout(5000));
      expect(delivered.sent).toBe(false);
      expectNoSecret(inspect(delivered, { depth: 9 }));
    },
  );
});

function expectNoSecret(text: string): void {
  for (const secret of [TOKEN, SIGNING, HEADER, 'access_token=planted']) expect(text).not.toContain(secret);
}
