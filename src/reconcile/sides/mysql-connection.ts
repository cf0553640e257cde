import { connect as connectSocket, type Socket } from 'node:net';
import { type Connection, createConnection, type FieldPacket, type Query, type RowDataPacket } from 'mysql2';
import { type MysqlAddress, sslOptions } from './mysql-address.ts';

/** Cells as the server's own bytes: no number, date or text passes through the driver's types (rule 5.6). */
export type Row = readonly (Buffer | null)[];

export interface Rows {
  readonly rows: readonly Row[];
  readonly fields: readonly FieldPacket[];
}

const CONNECT_TIMEOUT_MS = 10_000;

/** One connection. `fail` ends it at once, and everything that waits for it gets the reason. */
export class MysqlConnection {
  readonly #driver: Connection;
  readonly #socket: Socket;
  readonly #waiting = new Set<(reason: Error) => void>();
  #failure: Error | undefined;

  private constructor(driver: Connection, socket: Socket) {
    this.#driver = driver;
    this.#socket = socket;
    // Without a listener a connection that breaks while nobody waits for it would end the process.
    driver.on('error', (error) => this.fail(error));
  }

  /** Opens a connection. Throws the driver's error, or the signal's reason. */
  static async open(address: MysqlAddress, signal: AbortSignal): Promise<MysqlConnection> {
    signal.throwIfAborted();
    const ssl = sslOptions(address);
    const { host, port } = address;
    const socket =
      address.socket === undefined ? connectSocket({ host, port }) : connectSocket(address.socket);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 30_000);
    const driver = createConnection({
      // A socket of our own can be destroyed whatever the driver is doing.
      stream: () => socket,
      host,
      user: address.user,
      password: address.password,
      ...(address.database === '' ? {} : { database: address.database }),
      ...(ssl === undefined ? {} : { ssl }),
      charset: 'utf8mb4',
      connectTimeout: CONNECT_TIMEOUT_MS,
      connectAttributes: { program_name: 'trueup side' },
      // The server may not ask for files of this machine.
      flags: ['-LOCAL_FILES'],
    });
    const connection = new MysqlConnection(driver, socket);
    const onAbort = () => connection.fail(new Error('aborted'));
    signal.addEventListener('abort', onAbort);
    try {
      await connection.#until<void>((resolve, reject) =>
        driver.connect((error) => (error ? reject(error) : resolve())),
      );
      return connection;
    } catch (error) {
      connection.fail(error instanceof Error ? error : new Error(String(error)));
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  get id(): number {
    return this.#driver.threadId;
  }

  get failed(): boolean {
    return this.#failure !== undefined;
  }

  query(sql: string): Promise<Rows> {
    return this.#until((resolve, reject) => {
      this.#driver.query<RowDataPacket[][]>(asBytes(sql), (error, rows, fields) => {
        if (error) reject(error);
        else resolve({ rows: Array.isArray(rows) ? (rows as unknown as Row[]) : [], fields: fields ?? [] });
      });
    });
  }

  /** The rows of a query in pages. The server waits while a whole page is not taken, so two pages are in memory. */
  pages(sql: string, size: number): RowPages {
    return new RowPages(this.#driver, this.#driver.query(asBytes(sql)), size, (work) => this.#until(work));
  }

  /** Says goodbye to the server. Not for a connection that is at work. */
  async end(): Promise<void> {
    try {
      await this.#until<void>((resolve, reject) =>
        this.#driver.end((error) => (error ? reject(error) : resolve())),
      );
    } catch {
      // It is over either way.
    } finally {
      this.fail(new Error('the connection was closed'));
    }
  }

  fail(reason: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = reason;
    for (const reject of this.#waiting) reject(reason);
    this.#waiting.clear();
    this.#driver.destroy();
    this.#socket.destroy();
  }

  #until<T>(start: (resolve: (value: T) => void, reject: (reason: Error) => void) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#waiting.add(reject);
      const settled = () => this.#waiting.delete(reject);
      start(
        (value) => {
          settled();
          resolve(value);
        },
        (reason) => {
          settled();
          reject(reason);
        },
      );
    });
  }
}

type Until = <T>(start: (resolve: (value: T) => void, reject: (reason: Error) => void) => void) => Promise<T>;

class RowPages {
  readonly #driver: Connection;
  readonly #size: number;
  readonly #until: Until;
  #rows: Row[] = [];
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(driver: Connection, query: Query, size: number, until: Until) {
    this.#driver = driver;
    this.#size = size;
    this.#until = until;
    query.on('result', (row: Row) => {
      if (this.#rows.push(row) < size) return;
      driver.pause();
      this.#wake?.();
    });
    query.on('error', (error: Error) => {
      this.#error = error;
      this.#wake?.();
    });
    query.on('end', () => {
      this.#ended = true;
      this.#wake?.();
    });
  }

  /** The next page, full but for the last one; undefined after the last row. Throws the driver's error. */
  async next(): Promise<readonly Row[] | undefined> {
    while (this.#rows.length < this.#size && !this.#ended && this.#error === undefined) {
      await this.#until<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    // Rows before an error are not all rows.
    if (this.#error !== undefined) throw this.#error;
    const page = this.#rows;
    this.#rows = [];
    if (!this.#ended) this.#driver.resume();
    return page.length === 0 ? undefined : page;
  }
}

function asBytes(sql: string) {
  return { sql, rowsAsArray: true, typeCast: false } as const;
}
