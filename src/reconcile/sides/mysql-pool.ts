import { randomBytes } from 'node:crypto';
import type { MysqlAddress } from './mysql-address.ts';
import { MysqlConnection } from './mysql-connection.ts';
import { textLiteral } from './mysql-sql.ts';

const CONNECTIONS = 4;
/** An idle connection is closed by us before a server closes it on us. */
const IDLE_MS = 10_000;
const KILL_MS = 5_000;

interface Idle<T> {
  readonly opened: T;
  readonly timer: NodeJS.Timeout;
}

/** What `prepare` makes of a fresh connection. */
export interface Prepared {
  readonly connection: MysqlConnection;
}

/** At most four connections of one side, opened when needed. Errors are the driver's. */
export class MysqlPool<T extends Prepared> {
  /** Stands before every statement, so that a running one can be told from anybody else's. */
  readonly mark = `/* trueup side ${randomBytes(8).toString('hex')} */`;
  readonly #address: MysqlAddress;
  readonly #prepare: (connection: MysqlConnection) => Promise<T>;
  readonly #idle: Idle<T>[] = [];
  readonly #queue: (() => void)[] = [];
  readonly #kills = new Set<Promise<void>>();
  #taken = 0;
  #closed = false;

  constructor(address: MysqlAddress, prepare: (connection: MysqlConnection) => Promise<T>) {
    this.#address = address;
    this.#prepare = prepare;
  }

  async take(signal: AbortSignal): Promise<T> {
    await this.#place(signal);
    try {
      return this.#takeIdle() ?? (await this.#open(signal));
    } catch (error) {
      this.#leave();
      throw error;
    }
  }

  /** Gives back a connection that waits for nothing. */
  giveBack(opened: T): void {
    this.#leave();
    if (this.#closed) {
      void opened.connection.end();
      return;
    }
    const timer = setTimeout(() => {
      this.#idle.splice(
        this.#idle.findIndex((each) => each.opened === opened),
        1,
      );
      void opened.connection.end();
    }, IDLE_MS);
    timer.unref();
    this.#idle.push({ opened, timer });
  }

  /** Drops a connection whatever it is doing; what it still runs on the server is ended there too. */
  drop({ connection }: T, reason: Error, running: boolean): void {
    connection.fail(reason);
    this.#leave();
    if (!running) return;
    const kill = this.#kill(connection.id).catch(() => {
      // The server ends the statement at its own limit, or when it notices that nobody listens.
    });
    this.#kills.add(kill);
    void kill.finally(() => this.#kills.delete(kill));
  }

  async close(): Promise<void> {
    this.#closed = true;
    const idle = this.#idle.splice(0);
    for (const { timer } of idle) clearTimeout(timer);
    await Promise.all(idle.map(({ opened }) => opened.connection.end()));
    await Promise.all(this.#kills);
  }

  async #open(signal: AbortSignal): Promise<T> {
    const connection = await MysqlConnection.open(this.#address, signal);
    const onAbort = () => connection.fail(new Error('aborted'));
    signal.addEventListener('abort', onAbort);
    try {
      return await this.#prepare(connection);
    } catch (error) {
      connection.fail(new Error('the session could not be prepared'));
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #takeIdle(): T | undefined {
    for (let last = this.#idle.pop(); last !== undefined; last = this.#idle.pop()) {
      clearTimeout(last.timer);
      if (!last.opened.connection.failed) return last.opened;
    }
    return undefined;
  }

  /** Waits until fewer than all connections are in use. */
  async #place(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#taken < CONNECTIONS) {
      this.#taken += 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const turn = () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const onAbort = () => {
        this.#queue.splice(this.#queue.indexOf(turn), 1);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#queue.push(turn);
    });
  }

  #leave(): void {
    const next = this.#queue.shift();
    if (next === undefined) this.#taken -= 1;
    else next();
  }

  /**
   * Behind a balancer this connection may reach another server, where the same number is somebody else's: so only a
   * session that runs one of our own statements is ended.
   */
  async #kill(id: number): Promise<void> {
    const connection = await MysqlConnection.open(this.#address, AbortSignal.timeout(KILL_MS));
    try {
      const ours = `id = ${id} and locate(${textLiteral(this.mark)}, info) > 0`;
      const { rows } = await connection.query(`select id from information_schema.processlist where ${ours}`);
      if (rows.length > 0) await connection.query(`kill ${id}`);
    } finally {
      await connection.end();
    }
  }
}
