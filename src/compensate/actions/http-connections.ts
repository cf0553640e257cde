import { buildConnector, Client, errors } from 'undici';
import { DeadlinePassed } from './deadline.ts';
import { Readiness } from './readiness.ts';

/** A connection is kept open this long without work, as undici does by default; servers close idle ones soon after. */
const IDLE_MS = 4000;

type Socket = NonNullable<Parameters<buildConnector.Callback>[1]>;

export interface HttpConnection {
  readonly client: Client;
  readonly isOpen: () => boolean;
  readonly drop: () => void;
}

/**
 * The connections to one target, one undici `Client` each. An undici `Pool` opens a connection only when a request is
 * dispatched, so the bytes would leave one connect later than the slot that was granted (rule 6.14). Here a socket is
 * connected first (`warm`) and the client is built upon it. How many calls are in flight is the gate's matter; a queue
 * in front of the connections would only make calls start after their slot.
 */
export class HttpConnections {
  readonly #origin: URL;
  readonly #connectMs: number;
  readonly #most: number;
  readonly #connector: buildConnector.connector;
  readonly #idle: HttpConnection[] = [];
  readonly #readiness = new Readiness();
  readonly #opening = new Set<Promise<void>>();
  #closed = false;

  constructor(origin: URL, options: { readonly connectMs: number; readonly most: number }) {
    this.#origin = origin;
    this.#connectMs = options.connectMs;
    this.#most = options.most;
    this.#connector = buildConnector({ timeout: options.connectMs });
  }

  /** Has one open connection ready for each caller that has not sent yet. A failure shows at the send. */
  async warm(): Promise<void> {
    const expected = this.#readiness.expect(this.#most);
    if (this.#closed) return;
    if (this.#idle.length > 0) this.#readiness.opened();
    if (this.#idle.length >= expected) return;
    // Enough are being opened for others, who may have given up since: the first of them will do.
    if (this.#idle.length + this.#opening.size >= expected) return Promise.race(this.#opening);
    const opening = this.#openAhead();
    this.#opening.add(opening);
    await opening;
    this.#opening.delete(opening);
  }

  /** True when a send of this moment uses an open connection, or reports at once why there is none. */
  ready(): boolean {
    return this.#readiness.ready(this.#idle.some((connection) => connection.isOpen()));
  }

  /**
   * An open connection. Where none is idle, throws the failure that `warm` met; a caller that did not warm gets a new
   * connection, or its connect error, or `DeadlinePassed`.
   */
  async take(signal: AbortSignal): Promise<HttpConnection> {
    this.#readiness.taken();
    for (let next = this.#idle.pop(); next !== undefined; next = this.#idle.pop()) {
      if (next.isOpen()) return next;
      next.drop();
    }
    this.#readiness.throwKnownFailure();
    return await this.#open(signal);
  }

  /** Takes back a connection whose answer was read to its end. */
  give(connection: HttpConnection): void {
    if (this.#closed || !connection.isOpen() || this.#idle.length >= this.#most) connection.drop();
    else this.#idle.push(connection);
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#idle.splice(0)) connection.drop();
  }

  /** Never throws: the send meets the same failure and reports it. */
  async #openAhead(): Promise<void> {
    try {
      const connection = await this.#open(new AbortController().signal);
      this.#readiness.opened();
      this.give(connection);
    } catch (error) {
      this.#readiness.failed(error);
    }
  }

  async #open(signal: AbortSignal): Promise<HttpConnection> {
    if (this.#closed) throw new errors.ClientClosedError('the sender was closed');
    const socket = await this.#connect(signal);
    let open = true;
    const client = new Client(this.#origin, {
      connect: handOver(socket),
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      // The attempt's own deadline ends a call; it runs on the monotonic clock and covers the whole answer.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    const drop = () => {
      open = false;
      socket.destroy();
      void client.destroy();
      const at = this.#idle.indexOf(connection);
      if (at >= 0) this.#idle.splice(at, 1);
    };
    const connection: HttpConnection = { client, isOpen: () => open && !client.destroyed, drop };
    // A socket that no call has used yet is not watched by undici.
    const unused = setTimeout(drop, IDLE_MS).unref();
    client.on('connect', () => {
      open = true;
      clearTimeout(unused);
    });
    const lost = () => {
      open = false;
      clearTimeout(unused);
      // In use: the call that uses it ends with the error.
      if (this.#idle.includes(connection)) drop();
    };
    client.on('disconnect', lost);
    socket.once('close', lost);
    return connection;
  }

  #connect(signal: AbortSignal): Promise<Socket> {
    const { protocol, hostname, host, port } = this.#origin;
    return new Promise((resolve, reject) => {
      let waiting = true;
      const finish = (settle: () => void) => {
        waiting = false;
        clearTimeout(timer);
        signal.removeEventListener('abort', expire);
        settle();
      };
      const expire = () => finish(() => reject(new DeadlinePassed(signal)));
      // undici's own connect timeout ticks in steps of half a second; it only cleans up after this one.
      const timer = setTimeout(() => {
        const message = `not connected to ${host} within ${this.#connectMs} ms`;
        finish(() => reject(new errors.ConnectTimeoutError(message)));
      }, this.#connectMs);
      if (signal.aborted) return expire();
      signal.addEventListener('abort', expire, { once: true });
      this.#connector({ protocol, hostname: unbracketed(hostname), host, port }, (error, socket) => {
        if (error !== null) finish(() => reject(error));
        else if (waiting) finish(() => resolve(socket));
        else socket.destroy();
      });
    });
  }
}

/**
 * The client gets the socket that is already connected, and no other: one that died meanwhile, surely unused, fails the
 * call instead of connecting once more after its slot.
 */
function handOver(ready: Socket): buildConnector.connector {
  let given = false;
  return (_options, callback) => {
    const usable = !given && !ready.destroyed;
    given = true;
    // undici expects the answer after its connect call has returned.
    queueMicrotask(() => (usable ? callback(null, ready) : callback(new ConnectionGone(), null)));
  };
}

/** undici fails the waiting request with it, as with every error that is not one of its own socket errors. */
class ConnectionGone extends Error {
  override readonly name = 'ConnectionGone';
  readonly code = 'ECONNRESET';
  constructor() {
    super('the connection was lost before the request was written');
  }
}

function unbracketed(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}
