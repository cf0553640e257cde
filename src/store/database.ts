import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import createKnex, { type Knex } from 'knex';
import pg from 'pg';
import { EXIT, TrueupError } from '../error.ts';
import { type Instant, parseInstant } from '../reconcile/instant.ts';
import { connectHint, serverOf } from '../reconcile/sides/connect-hint.ts';
import { isTransientDatabaseError, sqlState } from './database-error.ts';

/** The store, or a transaction on it: every store function takes either. */
export type Db = Knex;

export { isTransientDatabaseError };

/** How long a statement may wait for a free connection, new ones included. */
const ACQUIRE_MS = 10_000;
const CONNECT_MS = 5_000;
/** No statement is silent for longer; a network that swallows packets would else hold a worker for a quarter hour. */
const SILENCE_MS = 120_000;
const FAILED_TRANSACTION = '25P02';
const RETRIED_STATES = new Set(['40001', '40P01']);
const TRIES = 5;

/**
 * Opens the store's pool. Nothing is connected before the first statement. Values come back exact: `bigint` and
 * `numeric` as text, `timestamptz` as `Instant`, `jsonb` parsed (rule 5.6); the parsers belong to this pool alone, so
 * an application that embeds trueup keeps its own. `max` connections, 10 when left out; `schema` is `trueup`. A
 * connection on which nothing is heard for `silenceMs` (120 s) is given up, with its statement.
 * Throws `TRU_STORE_URL` for an address that is none. Close with `db.destroy()`.
 */
export function openDatabase(
  url: string,
  options: { applicationName: string; max?: number; schema?: string; silenceMs?: number },
): Db {
  // The address holds a password, so the parser's own error, which repeats it, is not passed on.
  if (!URL.canParse(url) || !/^postgres(ql)?:$/.test(new URL(url).protocol)) {
    throw new TrueupError('TRU_STORE_URL', 'the store address is no postgres:// URL', {
      exit: EXIT.usage,
      hint: 'write postgres://user:password@host:5432/database in store.url or DATABASE_URL',
    });
  }
  const db = createKnex({
    client: 'pg',
    connection: {
      connectionString: url,
      application_name: options.applicationName,
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      types: { getTypeParser: exactParser },
      stream: () => openSocket(options.silenceMs ?? SILENCE_MS),
    },
    searchPath: [options.schema ?? 'trueup'],
    acquireConnectionTimeout: ACQUIRE_MS,
    pool: { min: 0, max: options.max ?? 10, afterCreate: setUpSession },
    // Knex prints what it also throws, and each lost idle connection, which the pool replaces by itself.
    log: { warn: ignore, error: ignore, debug: ignore, deprecate: ignore },
  });
  return explainConnecting(db, url);
}

/** The schema that holds trueup's tables. */
export function schemaOf(db: Db): string {
  return db.client.config.searchPath[0];
}

/** The store's own clock, the only one that decides anything (rule 6.14). Moves on within a transaction. */
export async function storeClock(db: Db): Promise<Instant> {
  const { rows } = await db.raw<{ rows: { now: Instant }[] }>('select clock_timestamp() as now');
  return only(rows).now;
}

/**
 * Runs `fn` in one transaction. A serialization failure or deadlock, which PostgreSQL reports only when surely
 * nothing was committed, runs `fn` again, 5 times in all; `fn` must therefore touch nothing but the store. Any other
 * failure, a connection lost in COMMIT too, is thrown. When `db` is a transaction already, `fn` joins it.
 */
export async function inTransaction<T>(db: Db, fn: (trx: Db) => Promise<T>): Promise<T> {
  if (db.isTransaction) return fn(db);
  for (let attempt = 1; ; attempt++) {
    try {
      return await db.transaction(async (trx) => {
        const result = await fn(trx);
        await refuseSilentRollback(trx);
        return result;
      });
    } catch (error) {
      if (attempt >= TRIES || !RETRIED_STATES.has(sqlState(error) ?? '')) throw error;
      await sleep(attempt * (10 + Math.random() * 40));
    }
  }
}

/** The one row that a statement surely gives. Throws when it gave none. */
export function only<T>(rows: readonly T[]): T {
  const [row] = rows;
  if (row === undefined)
    throw new TrueupError('TRU_STORE_NO_ROW', 'a statement of the store gave no row where one must be');
  return row;
}

/**
 * COMMIT after a failed statement is a ROLLBACK without an error; an `fn` that caught the failure would lose it. Asked
 * by a statement, since the driver hands over an error before it knows the state of the transaction.
 */
async function refuseSilentRollback(trx: Db): Promise<void> {
  try {
    await trx.raw('select 1');
  } catch (cause) {
    if (sqlState(cause) !== FAILED_TRANSACTION) throw cause;
    throw new TrueupError(
      'TRU_STORE_TRANSACTION_FAILED',
      'a statement of this transaction failed and its error was caught; nothing was committed',
      { cause },
    );
  }
}

function setUpSession(connection: pg.Client, done: (error: unknown, connection: pg.Client) => void): void {
  // Not in the startup packet, where connection poolers refuse it.
  connection.query("set timezone = 'UTC'; set datestyle = 'ISO, YMD'").then(
    () => done(null, connection),
    (error: unknown) => done(error, connection),
  );
}

/** The pool closes what is idle for 30 s, so a socket that is silent for longer is in a statement or a transaction. */
function openSocket(silenceMs: number): Socket {
  const socket = new Socket();
  socket.setTimeout(silenceMs, () =>
    socket.destroy(
      new TrueupError('TRU_STORE_SILENT', `the store said nothing for ${silenceMs / 1000} s`, {
        exit: EXIT.temporary,
        hint: 'check the store’s server and the network to it',
      }),
    ),
  );
  return socket;
}

/** Says of a connection that was not to be had which server it should lead to, and what to check. */
function explainConnecting(db: Db, url: string): Db {
  const acquire: () => Promise<pg.Client> = db.client.acquireConnection.bind(db.client);
  const { server, database } = serverOf(url);
  db.client.acquireConnection = async () => {
    try {
      return await acquire();
    } catch (cause) {
      if (cause instanceof createKnex.KnexTimeoutError)
        throw new TrueupError(
          'TRU_STORE_BUSY',
          `no connection to the store became free within ${ACQUIRE_MS / 1000} s`,
          {
            exit: EXIT.temporary,
            hint: 'the store answers slowly, or more work runs at once than it has connections for',
            cause,
          },
        );
      const hint = connectHint(cause);
      if (hint === undefined) throw cause;
      // A refused connection to several addresses has a code and no message.
      const said = cause instanceof Error ? cause.message : '';
      throw new TrueupError(
        'TRU_STORE_UNREACHABLE',
        `the store, database ${database} at ${server}: ${said || codeText(cause)}`,
        { exit: EXIT.temporary, hint: `${hint} (DATABASE_URL or store.url)`, cause },
      );
    }
  };
  return db;
}

function codeText(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'no connection';
}

const text = (value: string): string => value;
const TEXT_ARRAY: number = 1009;
const texts: (value: string) => string[] = pg.types.getTypeParser(TEXT_ARRAY);
const { TIMESTAMPTZ, TIMESTAMP, DATE, INTERVAL, INT8, NUMERIC } = pg.types.builtins;
const EXACT: ReadonlyMap<number, (value: string) => unknown> = new Map<number, (value: string) => unknown>([
  [INT8, text],
  [NUMERIC, text],
  [TIMESTAMP, text],
  [DATE, text],
  [INTERVAL, text],
  [TIMESTAMPTZ, instant],
  [1016, texts], // bigint[]
  [1231, texts], // numeric[]
  [1185, (value) => texts(value).map(instant)], // timestamptz[]
]);

function exactParser(oid: number, format: string): (value: string) => unknown {
  return EXACT.get(oid) ?? pg.types.getTypeParser(oid, format === 'binary' ? 'binary' : 'text');
}

function instant(value: string): Instant {
  const parsed = parseInstant(value);
  if (parsed === undefined)
    throw new TrueupError('TRU_STORE_INSTANT', `the store gave the time "${value}", which is no instant`);
  return parsed;
}

function ignore(): void {}
