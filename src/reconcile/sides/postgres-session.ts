import pg from 'pg';
import type { Secret } from '../../config/secret.ts';
import type { FrameBuffer, RawFormat } from '../raw/frame-buffer.ts';
import { CopyOut } from './postgres-copy.ts';
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
/**
 * A copy is one statement for what a cursor reads in many, and waits for the other side in between. `statementTimeout`
 * bounds its silence instead, and so many times that its whole.
 */
const COPY_LIMIT = 10;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

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
  readonly #statementTimeout: number;
  readonly #cancelling = new Set<Promise<void>>();

  constructor(options: SessionOptions) {
    this.#where = options.where;
    this.#statementTimeout = options.statementTimeout;
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
      client = await this.#pool.connect();
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

  /** Starts `copy (select ...) to stdout` in a snapshot of its own. */
  async copy(snapshot: Snapshot, text: string, format: RawFormat): Promise<SnapshotCopy> {
    const limit = Math.min(this.#statementTimeout * COPY_LIMIT, LONGEST_TIMER_MS - GRACE_MS);
    const { rows } = await snapshot.query(IDENTIFY, [String(Math.max(1, Math.ceil(limit)))]);
    const [pid = null, since = null] = rows[0] ?? [];
    const copy = new CopyOut({ text, format, silence: this.#statementTimeout, limit: limit + GRACE_MS });
    return new SnapshotCopy(snapshot, copy, () => this.#cancel(pid, since));
  }

  /** Ends what a given-up connection left running. It may be sorting, and would notice only when it writes. */
  #cancel(pid: string | null, since: string | null): void {
    const cancelling = this.#pool
      .query(CANCEL, [pid, since])
      // It ends by itself then, when it writes to the closed connection or at its timeout.
      .catch(() => undefined)
      .then(() => void this.#cancelling.delete(cancelling));
    this.#cancelling.add(cancelling);
  }

  async close(): Promise<void> {
    await Promise.all(this.#cancelling);
    await this.#pool.end();
  }
}

const IDENTIFY = "select pg_backend_pid(), now(), set_config('statement_timeout', $1, true)";

/** Only while that very transaction runs: the process may serve somebody else by now. */
const CANCEL = `
  select pg_cancel_backend(pid) from pg_stat_activity
   where pid = $1::int and xact_start = $2::timestamptz and application_name = '${APPLICATION_NAME}'`;

/** A read-only transaction. Breaks off at once when the signal aborts. */
export class Snapshot {
  readonly #client: pg.PoolClient;
  readonly #where: string;
  readonly #signal: AbortSignal;
  readonly #onAbort = () => this.discard();
  readonly #onError = () => this.discard();
  #onDiscard: (() => void) | undefined;
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

  /** Hands the connection to a query that reads its answer by itself. */
  submit(query: pg.Submittable): void {
    this.#signal.throwIfAborted();
    if (this.#released) throw toSideError(new Error('the connection was lost'), this.#where);
    this.#client.query(query);
  }

  /** What is thrown for an error of the driver. */
  reasonFor(error: unknown): unknown {
    return this.#signal.aborted ? this.#signal.reason : toSideError(error, this.#where);
  }

  onDiscard(listener: () => void): void {
    this.#onDiscard = listener;
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
    if (destroy) this.#onDiscard?.();
  }
}

/** A copy that runs in a snapshot, and ends with it. */
export class SnapshotCopy {
  readonly frames: FrameBuffer;
  readonly #snapshot: Snapshot;
  readonly #copy: CopyOut;

  constructor(snapshot: Snapshot, copy: CopyOut, cancel: () => void) {
    this.frames = copy.frames;
    this.#snapshot = snapshot;
    this.#copy = copy;
    snapshot.submit(copy);
    snapshot.onDiscard(() => {
      if (this.frames.state === 'open') cancel();
    });
  }

  async more(): Promise<void> {
    await this.#orReason(this.#copy.more());
  }

  flow(): void {
    this.#copy.flow();
  }

  async close(): Promise<void> {
    await this.#orReason(this.#copy.end());
    await this.#snapshot.close();
  }

  discard(): void {
    this.#snapshot.discard();
  }

  async #orReason(waiting: Promise<void>): Promise<void> {
    try {
      await waiting;
    } catch (error) {
      throw this.#snapshot.reasonFor(error);
    }
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
    "SET LOCAL IntervalStyle = 'postgres'",
    "SET LOCAL bytea_output = 'hex'",
    'SET LOCAL extra_float_digits = 3',
    // A scan reads its cursor to the end, so the plan for all rows is wanted, not that for the first ones.
    'SET LOCAL cursor_tuple_fraction = 1',
  ].join('; ');
}
