import type { MysqlAddress } from './mysql-address.ts';
import type { MysqlConnection, Row, Rows } from './mysql-connection.ts';
import { StatementTimeout, toSideError } from './mysql-errors.ts';
import { type Flavour, flavourOf, limitStatement, PIN_CHECK, pinStatements, wrongPin } from './mysql-pins.ts';
import { MysqlPool } from './mysql-pool.ts';
import { misconfigured } from './sql-config.ts';

/** A server that should have ended a statement gets this much longer before the connection is given up. */
const GRACE_MS = 5_000;

export interface SessionOptions {
  readonly address: MysqlAddress;
  /** Names the side in errors, without secrets. */
  readonly where: string;
  /** Milliseconds. */
  readonly statementTimeout: number;
}

interface Pinned {
  readonly connection: MysqlConnection;
  readonly flavour: Flavour;
}

/** A small pool that only hands out read-only snapshots. Every error is a `SideError`, or the signal's reason. */
export class MysqlSession {
  readonly #options: SessionOptions;
  readonly #pool: MysqlPool<Pinned>;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#pool = new MysqlPool(options.address, (connection) => pin(connection, options.statementTimeout));
  }

  /** One snapshot for as long as `work` runs. */
  async read<T>(signal: AbortSignal, work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
    const snapshot = await this.open(signal);
    try {
      return await work(snapshot);
    } catch (error) {
      snapshot.discard();
      throw error;
    } finally {
      await snapshot.close();
    }
  }

  /** A snapshot that the caller closes, whatever happens. */
  async open(signal: AbortSignal): Promise<Snapshot> {
    let pinned: Pinned;
    try {
      pinned = await this.#pool.take(signal);
    } catch (error) {
      signal.throwIfAborted();
      throw toSideError(error, this.#options.where);
    }
    const snapshot = new Snapshot(this.#pool, pinned, this.#options, signal);
    try {
      await snapshot.begin();
      return snapshot;
    } catch (error) {
      snapshot.discard();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }
}

async function pin(connection: MysqlConnection, statementTimeout: number): Promise<Pinned> {
  const { rows } = await connection.query('select version()');
  const flavour = flavourOf(rows[0]?.[0]?.toString() ?? '');
  for (const statement of pinStatements(flavour, statementTimeout)) await connection.query(statement);
  return { connection, flavour };
}

/** A read-only transaction. Breaks off at once when the signal aborts. */
export class Snapshot {
  readonly flavour: Flavour;
  readonly #pool: MysqlPool<Pinned>;
  readonly #pinned: Pinned;
  readonly #options: SessionOptions;
  readonly #signal: AbortSignal;
  readonly #onAbort = () => this.discard();
  #running = false;
  #released = false;

  constructor(pool: MysqlPool<Pinned>, pinned: Pinned, options: SessionOptions, signal: AbortSignal) {
    this.flavour = pinned.flavour;
    this.#pool = pool;
    this.#pinned = pinned;
    this.#options = options;
    this.#signal = signal;
    signal.addEventListener('abort', this.#onAbort);
    if (signal.aborted) this.discard();
  }

  async begin(): Promise<void> {
    await this.query('start transaction with consistent snapshot, read only');
    const [settings = []] = (await this.query(PIN_CHECK)).rows;
    const wrong = wrongPin(settings.map((cell) => cell?.toString() ?? ''));
    if (wrong !== undefined) throw misconfigured(this.#options.where, wrong);
  }

  async query(text: string): Promise<Rows> {
    return this.#limited(this.#options.statementTimeout + GRACE_MS, () =>
      this.#pinned.connection.query(`${this.#pool.mark} ${text}`),
    );
  }

  /**
   * The rows of one statement in pages. The server's limit would also count the time that the other side takes, so
   * here the limit is ours, for each page; a statement that exceeds it is killed.
   */
  async *pages(text: string, size: number): AsyncGenerator<readonly Row[]> {
    await this.query(limitStatement(this.flavour, 0));
    const pages = this.#pinned.connection.pages(`${this.#pool.mark} ${text}`, size);
    let ended = false;
    try {
      for (;;) {
        const page = await this.#limited(this.#options.statementTimeout, () => pages.next());
        if (page === undefined) break;
        yield page;
      }
      ended = true;
    } finally {
      // What is left of the rows is still on its way.
      this.#running = !ended;
      if (!ended) this.discard();
    }
    await this.query(limitStatement(this.flavour, this.#options.statementTimeout));
  }

  /** Ends the transaction; the connection goes back to the pool only when the server confirmed it. */
  async close(): Promise<void> {
    if (this.#released) return;
    try {
      await this.query('commit');
      if (this.#release()) this.#pool.giveBack(this.#pinned);
    } finally {
      this.discard();
    }
  }

  /** Closes the connection, whatever it is doing. */
  discard(): void {
    if (this.#release()) this.#pool.drop(this.#pinned, new Error('the connection was lost'), this.#running);
  }

  async #limited<T>(ms: number, work: () => Promise<T>): Promise<T> {
    this.#signal.throwIfAborted();
    const { connection } = this.#pinned;
    let late: StatementTimeout | undefined;
    const timer = setTimeout(() => {
      late = new StatementTimeout(ms);
      this.discard();
    }, ms);
    try {
      if (this.#released || connection.failed) throw new Error('the connection was lost');
      this.#running = true;
      const result = await work();
      this.#running = false;
      return result;
    } catch (error) {
      // An answer, if a bad one: nothing runs any more.
      if (!this.#released && !connection.failed) this.#running = false;
      this.#signal.throwIfAborted();
      throw toSideError(late ?? error, this.#options.where);
    } finally {
      clearTimeout(timer);
    }
  }

  #release(): boolean {
    if (this.#released) return false;
    this.#released = true;
    this.#signal.removeEventListener('abort', this.#onAbort);
    return true;
  }
}
