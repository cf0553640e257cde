import pg from 'pg';
import type { Secret } from '../../config/secret.ts';
import { toSideError } from './postgres-errors.ts';

export type Row = readonly (string | null)[];

export interface Rows {
  readonly rows: readonly Row[];
  readonly fields: readonly pg.FieldDef[];
}

/** Marks the sessions of sides, so that their clock does not wait for each other's reads (rule 5.8). */
export const APPLICATION_NAME = 'trueup side';

const CONNECT_TIMEOUT_MS = 10_000;
/** A server that should have cancelled a statement gets this much longer before the connection is given up. */
const GRACE_MS = 5_000;
const CONNECTIONS = 4;

/** Every cell arrives as the server's text: no bigint, numeric or timestamp passes through a number or Date. */
const AS_TEXT: pg.CustomTypesConfig = { getTypeParser: () => (text: string | Buffer) => text };

export interface SessionOptions {
  readonly url: Secret;
  /** Names the side in errors, without secrets. */
  readonly where: string;
  /** Milliseconds. */
  readonly statementTimeout: number;
}

/** A small pool that only hands out read-only snapshots. Every error is a `SideError`, or the signal's reason. */
export class PostgresSession {
  readonly #pool: pg.Pool;
  readonly #where: string;
  readonly #begin: string;

  constructor(options: SessionOptions) {
    this.#where = options.where;
    this.#begin = beginStatement(options.statementTimeout);
    this.#pool = new pg.Pool({
      connectionString: options.url.reveal(),
      max: CONNECTIONS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: options.statementTimeout + GRACE_MS,
      keepAlive: true,
      types: AS_TEXT,
    });
    // An idle connection that breaks is replaced at the next read; without a listener it would end the process.
    this.#pool.on('error', () => undefined);
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
    signal.throwIfAborted();
    let client: pg.PoolClient;
    try {
      client = await untilAborted(this.#pool.connect(), signal);
    } catch (error) {
      signal.throwIfAborted();
      throw toSideError(error, this.#where);
    }
    const snapshot = new Snapshot(client, this.#where, signal);
    try {
      await snapshot.query(this.#begin);
      return snapshot;
    } catch (error) {
      snapshot.discard();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}

/** A server that accepts and says nothing is not waited for; a connection that still comes goes back to the pool. */
async function untilAborted(connecting: Promise<pg.PoolClient>, signal: AbortSignal): Promise<pg.PoolClient> {
  let giveUp: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    giveUp = () => reject(signal.reason);
    signal.addEventListener('abort', giveUp, { once: true });
  });
  try {
    return await Promise.race([connecting, aborted]);
  } catch (error) {
    connecting.then(
      (client) => client.release(),
      () => undefined,
    );
    throw error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

/** A read-only transaction. Breaks off at once when the signal aborts. */
export class Snapshot {
  readonly #client: pg.PoolClient;
  readonly #where: string;
  readonly #signal: AbortSignal;
  readonly #onAbort = () => this.discard();
  readonly #onError = () => this.discard();
  #released = false;

  constructor(client: pg.PoolClient, where: string, signal: AbortSignal) {
    this.#client = client;
    this.#where = where;
    this.#signal = signal;
    signal.addEventListener('abort', this.#onAbort);
    // A connection that dies between two statements reports it here; the next statement then fails.
    client.on('error', this.#onError);
    if (signal.aborted) this.discard();
  }

  async query(text: string, values: readonly unknown[] = []): Promise<Rows> {
    this.#signal.throwIfAborted();
    try {
      if (this.#released) throw new Error('the connection was lost');
      // Only a query without values may hold several statements.
      const bound = values.length > 0 ? { values: [...values] } : {};
      return await this.#client.query<(string | null)[]>({ text, rowMode: 'array', ...bound });
    } catch (error) {
      this.#signal.throwIfAborted();
      throw toSideError(error, this.#where);
    }
  }

  /** Ends the transaction; the connection goes back to the pool only when the server confirmed it. */
  async close(): Promise<void> {
    if (this.#released) return;
    try {
      await this.query('COMMIT');
      this.#release(false);
    } finally {
      this.discard();
    }
  }

  /** Closes the connection, whatever it is doing. */
  discard(): void {
    this.#release(true);
  }

  #release(destroy: boolean): void {
    if (this.#released) return;
    this.#released = true;
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#client.removeListener('error', this.#onError);
    this.#client.release(destroy);
  }
}

/**
 * Settings end with the transaction, so poolers between us and the server keep clean sessions. The text forms that
 * canonical values are read from depend on them.
 */
function beginStatement(statementTimeout: number): string {
  return [
    'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
    `SET LOCAL statement_timeout = ${Math.max(1, Math.ceil(statementTimeout))}`,
    `SET LOCAL application_name = '${APPLICATION_NAME}'`,
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO, YMD'",
    "SET LOCAL bytea_output = 'hex'",
    'SET LOCAL extra_float_digits = 3',
    // A scan reads its cursor to the end, so the plan for all rows is wanted, not that for the first ones.
    'SET LOCAL cursor_tuple_fraction = 1',
  ].join('; ');
}
