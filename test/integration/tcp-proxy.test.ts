import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';

/** What the server behind the proxy received. It answers each chunk with the same in capitals. */
let received: string;
let proxy: TcpProxy;
let stopServer: () => Promise<void>;
let clients: Socket[];

beforeEach(async () => {
  received = '';
  clients = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      received += bytes;
      socket.write(String(bytes).toUpperCase());
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  proxy = await startProxy({ host: '127.0.0.1', port: address.port });
  stopServer = async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
});

afterEach(async () => {
  for (const client of clients) client.destroy();
  await proxy.close();
  await stopServer();
});

interface Client {
  readonly socket: Socket;
  answer: string;
  error: string;
  closed: boolean;
}

async function open(): Promise<Client> {
  const socket = connect(proxy.port, '127.0.0.1');
  const client: Client = { socket, answer: '', error: '', closed: false };
  clients.push(socket);
  socket.on('data', (bytes) => {
    client.answer += bytes;
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    client.error = error.code ?? error.message;
  });
  socket.on('close', () => {
    client.closed = true;
  });
  await until('the client is connected or failed', () => !socket.connecting);
  return client;
}

test('passes bytes both ways and rewrites an address to its own port', async () => {
  const client = await open();
  client.socket.write('hello');
  await until('the answer arrives', () => client.answer === 'HELLO');
  expect(proxy.url('postgres://user:pw@db.example:5432/name?a=1')).toBe(
    `postgres://user:pw@127.0.0.1:${proxy.port}/name?a=1`,
  );
});

test('refuses connections and closes open ones, and comes back on the same port', async () => {
  const before = await open();
  await proxy.mode('refuse');
  await until('the open connection is closed', () => before.closed);
  const refused = await open();
  await until('the new connection fails', () => refused.closed);
  expect(refused.error).toBe('ECONNREFUSED');
  await proxy.mode('pass');
  const after = await open();
  after.socket.write('back');
  await until('the answer arrives', () => after.answer === 'BACK');
});

test('resets open and new connections', async () => {
  const before = await open();
  before.socket.write('x');
  await until('it works first', () => before.answer === 'X');
  await proxy.mode('reset');
  await until('the open connection is reset', () => before.closed);
  expect(before.error).toBe('ECONNRESET');
  const next = await open();
  await until('the new connection is reset', () => next.closed);
  expect(next.error).toBe('ECONNRESET');
});

test('a black hole accepts and delivers nothing, and what lost bytes in it is reset afterwards', async () => {
  const open1 = await open();
  await proxy.mode('black-hole');
  const open2 = await open();
  open1.socket.write('lost');
  open2.socket.write('lost too');
  await until('both texts vanished', () => proxy.lostBytes() === 'lostlost too'.length);
  expect([open1.closed, open2.closed]).toEqual([false, false]);
  await proxy.mode('pass');
  await until('both are reset', () => open1.closed && open2.closed);
  expect([open1.answer, open2.answer, received]).toEqual(['', '', '']);
  const after = await open();
  after.socket.write('again');
  await until('a new connection works', () => after.answer === 'AGAIN');
});

test('drops answers while requests arrive', async () => {
  const client = await open();
  await proxy.mode('drop-answers');
  client.socket.write('pay');
  await until('the server has the request', () => received === 'pay');
  await proxy.mode('pass');
  await until('the connection that lost an answer is reset', () => client.closed);
  expect(client.answer).toBe('');
});

test('delays answers and keeps their order', async () => {
  const client = await open();
  await proxy.mode({ delayMs: 150 });
  const start = performance.now();
  client.socket.write('one');
  await until('the server has the first', () => received === 'one');
  await proxy.mode('pass');
  client.socket.write('two');
  await until('both answers arrive', () => client.answer === 'ONETWO');
  expect(performance.now() - start).toBeGreaterThanOrEqual(149);
});
