import type { RequestListener } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Channel } from '../../src/alert/channel.ts';
import { createChannel } from '../../src/alert/channels/create.ts';
import { refreshAlerts } from '../../src/alert/outbox.ts';
import { channelSchema } from '../../src/config/schema.ts';
import { deliverAlerts } from '../../src/jobs/deliver-alerts.ts';
import { type Db, inTransaction, openDatabase } from '../../src/store/database.ts';
import { createStore, type TestDatabase } from '../support/database.ts';
import { startServer, type TestServer } from '../support/http-server.ts';
import { storeDiff } from '../support/stored-diff.ts';
import { until } from '../support/wait.ts';

const ALERTS = { warning: ['hook', 'chat'], action: ['hook', 'chat'], repeat: 14_400_000 };
let store: TestDatabase;
let db: Db;
const servers: TestServer[] = [];

beforeEach(async () => {
  store = await createStore();
  db = openDatabase(store.url, { applicationName: 'deliver-alerts.test' });
});

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
  await db.destroy();
  await store.drop();
});

async function receiver(
  handler: RequestListener,
  rate = 20,
): Promise<{ server: TestServer; channel: Channel }> {
  const server = await startServer(handler);
  servers.push(server);
  const config = { type: 'webhook', url: `${server.url}/hook`, rate };
  return { server, channel: createChannel('hook', channelSchema.parse(config)) };
}

const accept: RequestListener = (_request, response) => response.writeHead(204).end();
const refuse: RequestListener = (_request, response) => response.writeHead(500).end('out of order');

const idsOf = (server: TestServer) => server.requests.map(({ headers }) => headers['webhook-id']);
const titlesOf = (server: TestServer) => server.requests.map(({ body }) => JSON.parse(body).data.title);

async function openAlerts(count: number, warning = ['hook']): Promise<void> {
  for (let n = 0; n < count; n++) await storeDiff(db, { reconciliation: `r${n}`, key: ['O-1'] });
  await inTransaction(db, (trx) => refreshAlerts(trx, { ...ALERTS, warning }));
}

const deliver = (channels: readonly Channel[], signal = new AbortController().signal) =>
  deliverAlerts({ db, channels, signal });

async function rows(): Promise<{ state: string; attempts: number; error: string | null; leased: boolean }[]> {
  const { rows: found } = await db.raw(
    `select state, attempts, error, coalesce(lease_until > clock_timestamp(), false) as leased
       from alert_message order by id`,
  );
  return found;
}

/** As if the time of all leases and back-offs had passed. */
async function passTime(): Promise<void> {
  await db.raw(
    `update alert_message set due_at = clock_timestamp(), lease_until = clock_timestamp() - interval '2 minutes'
      where state = 'waiting' and attempts > 0`,
  );
}

test('what waits is delivered in order, once', async () => {
  const { server, channel } = await receiver(accept);
  await openAlerts(3);
  expect(await deliver([channel])).toEqual(
    Array.from({ length: 3 }, () => ({ channel: 'hook', result: 'sent', messages: 1, reason: null })),
  );
  expect(await deliver([channel])).toEqual([]);
  expect(titlesOf(server)).toEqual(['r0: 1 diff found', 'r1: 1 diff found', 'r2: 1 diff found']);
});

test('two workers at once deliver everything once', async () => {
  const { server, channel } = await receiver(accept);
  await openAlerts(5);
  await until('everything is delivered', async () => {
    await Promise.all([deliver([channel]), deliver([channel])]);
    return (await rows()).every(({ state }) => state === 'sent');
  });
  expect(new Set(idsOf(server)).size).toBe(5);
  expect(server.requests).toHaveLength(5);
});

test('a process that dies between send and record has its message sent again under the same id', async () => {
  const { server, channel } = await receiver(accept);
  await openAlerts(1);
  let delivered = false;
  const dying: Channel = {
    ...channel,
    send: async (message, signal) => {
      await channel.send(message, signal);
      delivered = true;
      // The process is gone: nobody ever hears of the answer.
      return new Promise(() => undefined);
    },
  };
  void deliver([dying]);
  await until('the receiver has the message', () => delivered);
  expect(await rows()).toMatchObject([{ state: 'waiting', attempts: 1, leased: true }]);
  expect(await deliver([channel])).toEqual([]);

  await passTime();
  expect(await deliver([channel])).toMatchObject([{ result: 'sent' }]);
  expect(await rows()).toMatchObject([{ state: 'sent', attempts: 2 }]);
  const [first, second] = idsOf(server);
  expect(server.requests).toHaveLength(2);
  expect(second).toBe(first);
});

test('a store that is lost between send and record is told to the caller, and the message is not lost', async () => {
  const { server, channel } = await receiver(accept);
  await openAlerts(1);
  const cutting: Channel = {
    ...channel,
    send: async (message, signal) => {
      const delivered = await channel.send(message, signal);
      await db.destroy();
      return delivered;
    },
  };
  await expect(deliver([cutting])).rejects.toThrow();
  db = openDatabase(store.url, { applicationName: 'deliver-alerts.test' });
  await passTime();
  expect(await deliver([channel])).toMatchObject([{ result: 'sent' }]);
  expect(new Set(idsOf(server)).size).toBe(1);
  expect(server.requests).toHaveLength(2);
});

test('a failed message is kept with its reason and tried again when it is due', async () => {
  let handler = refuse;
  const { server, channel } = await receiver((request, response) => handler(request, response));
  await openAlerts(2);
  expect(await deliver([channel])).toEqual([
    { channel: 'hook', result: 'failed', messages: 1, reason: '500: out of order' },
  ]);
  expect(await deliver([channel])).toEqual([]);
  expect(await rows()).toMatchObject([
    { state: 'waiting', attempts: 1, error: '500: out of order' },
    { state: 'waiting', attempts: 0 },
  ]);
  handler = accept;
  await passTime();
  expect(await deliver([channel])).toMatchObject([{ result: 'sent' }, { result: 'sent' }]);
  expect(titlesOf(server)).toEqual(['r0: 1 diff found', 'r0: 1 diff found', 'r1: 1 diff found']);
});

test('waits as long as the channel asks for', async () => {
  const { channel } = await receiver((_request, response) =>
    response.writeHead(429, { 'retry-after': '900' }).end(),
  );
  await openAlerts(1);
  await deliver([channel]);
  const { rows: found } = await db.raw(
    'select extract(epoch from due_at - clock_timestamp())::float8 as wait from alert_message',
  );
  expect(found[0].wait).toBeGreaterThan(890);
});

test('a message that is refused for good is given up and the next one is sent', async () => {
  const { server, channel } = await receiver((_request, response) => {
    response.writeHead(server.requests.length === 1 ? 410 : 204).end();
  });
  await openAlerts(2);
  expect((await deliver([channel])).map(({ result }) => result)).toEqual(['refused', 'sent']);
  expect((await rows()).map(({ state }) => state)).toEqual(['failed', 'sent']);
});

test('more messages than the rate allows become one, and nothing is dropped', async () => {
  const { server, channel } = await receiver(accept, 3);
  await openAlerts(10);
  expect(await deliver([channel])).toEqual([{ channel: 'hook', result: 'sent', messages: 10, reason: null }]);
  const { data } = JSON.parse(server.requests[0]?.body ?? '');
  expect(data).toMatchObject({ kind: 'digest', count: 10 });
  expect(data.samples.map(({ text }: { text: string }) => text)).toContain('r9: 1 diff found');
  expect((await rows()).every(({ state }) => state === 'sent')).toBe(true);
});

test('no more than the rate is sent in a minute, over passes', async () => {
  const { server, channel } = await receiver(accept, 2);
  for (let pass = 0; pass < 4; pass++) {
    await storeDiff(db, { reconciliation: `pass${pass}`, key: ['O-1'] });
    await inTransaction(db, (trx) => refreshAlerts(trx, { ...ALERTS, warning: ['hook'] }));
    await deliver([channel]);
  }
  expect(server.requests).toHaveLength(2);
  await db.raw(`update alert_message set sent_at = sent_at - interval '61 seconds' where state = 'sent'`);
  await deliver([channel]);
  expect((await rows()).every(({ state }) => state === 'sent')).toBe(true);
  expect(server.requests.length).toBeLessThanOrEqual(4);
});

test('a digest that failed is sent again under the same id', async () => {
  let handler = refuse;
  const { server, channel } = await receiver((request, response) => handler(request, response), 3);
  await openAlerts(5);
  expect(await deliver([channel])).toMatchObject([{ result: 'failed', messages: 5 }]);
  handler = accept;
  await passTime();
  expect(await deliver([channel])).toMatchObject([{ result: 'sent', messages: 5 }]);
  expect(new Set(idsOf(server)).size).toBe(1);
});

test('a channel that hangs does not delay the others, and a shutdown gives its message back', async () => {
  const hanging = await receiver(() => undefined);
  const server = await startServer((_request, response) => response.end('ok'));
  servers.push(server);
  const chat = createChannel('chat', channelSchema.parse({ type: 'slack', url: `${server.url}/services/x` }));
  await openAlerts(1, ['hook', 'chat']);
  const shutdown = new AbortController();
  const delivery = deliver([hanging.channel, chat], shutdown.signal);
  await until('both were called', () => server.requests.length === 1 && hanging.server.requests.length === 1);
  await until('chat is recorded', async () => (await rows()).some(({ state }) => state === 'sent'));
  shutdown.abort();
  expect(await delivery).toEqual([{ channel: 'chat', result: 'sent', messages: 1, reason: null }]);
  expect(await rows()).toMatchObject([
    { state: 'waiting', attempts: 0, error: null, leased: false },
    { state: 'sent' },
  ]);
});
