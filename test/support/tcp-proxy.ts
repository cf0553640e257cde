import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * `pass`: as if the proxy were not there. `refuse`: nobody listens, open connections are closed. `reset`: each
 * connection, open or new, is reset. `black-hole`: connections are accepted, what is sent vanishes. `drop-answers`:
 * requests arrive, answers vanish. `delayMs`: answers come that much later.
 */
export type ProxyMode =
  | 'pass'
  | 'refuse'
  | 'reset'
  | 'black-hole'
  | 'drop-answers'
  | { readonly delayMs: number };

export interface TcpProxy {
  readonly port: number;
  /** The same URL with the proxy's host and port. */
  url(original: string): string;
  /** Changes the mode, for open connections too. A connection that lost bytes is reset when its mode ends. */
  mode(mode: ProxyMode): Promise<void>;
  /** How many bytes vanished so far: what a test waits for before it goes on. */
  lostBytes(): number;
  close(): Promise<void>;
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** Something did not get through: the connection is of no use any more. */
  broken: boolean;
}

/** A TCP proxy on a port of 127.0.0.1 that can fail in the ways networks and servers do. */
export async function startProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const links = new Set<Link>();
  let mode: ProxyMode = 'pass';
  let lostBytes = 0;

  function accept(client: Socket): void {
    if (mode === 'reset') {
      client.on('error', ignore);
      client.resetAndDestroy();
      return;
    }
    const server = connect({ ...target, allowHalfOpen: true });
    const link: Link = { client, server, broken: false };
    links.add(link);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', ignore);
      one.on('close', () => {
        if (other.destroyed) links.delete(link);
        // Nobody notices through a black hole that the other end is gone.
        else if (mode === 'black-hole') link.broken = true;
        else other.destroy();
      });
    }
    const lose = (bytes: number) => {
      link.broken = true;
      lostBytes += bytes;
    };
    forward(client, server, () => (mode === 'black-hole' ? 'lose' : 0), lose);
    forward(server, client, () => answers(mode), lose);
  }

  const server = createServer({ allowHalfOpen: true, pauseOnConnect: false }, accept);
  const port = await listen(server, 0);

  async function stopListening(): Promise<void> {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const link of links) drop(link);
    await closed;
  }

  return {
    port,
    url(original) {
      const url = new URL(original);
      url.hostname = '127.0.0.1';
      url.port = String(port);
      return url.href;
    },
    async mode(next) {
      mode = next;
      for (const link of links) if (link.broken || next === 'reset') reset(link);
      if (next === 'refuse') await stopListening();
      else if (!server.listening) await listen(server, port);
    },
    lostBytes: () => lostBytes,
    close: stopListening,
  };
}

/** What happens to the next bytes from the server: lost, or how many milliseconds they take. */
function answers(mode: ProxyMode): 'lose' | number {
  if (mode === 'black-hole' || mode === 'drop-answers') return 'lose';
  return typeof mode === 'object' ? mode.delayMs : 0;
}

function forward(from: Socket, to: Socket, fate: () => 'lose' | number, lose: (bytes: number) => void): void {
  // One chain for each direction keeps the bytes in order when the delay changes.
  let chain = Promise.resolve();
  function later(delayMs: number, action: () => void): void {
    const due = delay(delayMs);
    chain = chain.then(() => due).then(action);
  }
  from.on('data', (bytes) => {
    const now = fate();
    if (now === 'lose') {
      lose(bytes.length);
      return;
    }
    later(now, () => {
      if (to.destroyed || to.write(bytes)) return;
      from.pause();
      to.once('drain', () => from.resume());
    });
  });
  from.on('end', () => {
    const now = fate();
    if (now === 'lose') lose(0);
    else later(now, () => to.end());
  });
}

async function delay(ms: number): Promise<void> {
  if (ms > 0) await new Promise((done) => setTimeout(done, ms));
}

function drop({ client, server }: Link): void {
  client.destroy();
  server.destroy();
}

function reset({ client, server }: Link): void {
  client.resetAndDestroy();
  server.destroy();
}

async function listen(server: Server, port: number): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the proxy has no port');
  return address.port;
}

/** The other end learns of it by the close that follows. */
function ignore(): void {}
