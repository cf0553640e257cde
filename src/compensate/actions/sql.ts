import { createHash } from 'node:crypto';
import pg from 'pg';
import type { Target } from '../../config/schema.ts';
import type { Outcome, Payload, SendContext, Sender } from '../action.ts';
import { type Classified, classifyError } from '../retry/classify.ts';
import { errorRecord } from '../retry/error-chain.ts';
import { DeadlinePassed, untilDeadline } from './deadline.ts';
import { claimKey, ensureDedupeTable } from './dedupe-table.ts';
import { KnownFailure } from './known-failure.ts';
import { codeOf, known, outcome, storable } from './outcome.ts';
import { Readiness } from './readiness.ts';
import { targetUrl } from './target-url.ts';

type SqlPayload = Extract<Payload, { type: 'sql' }>;

/** How far a send came; it decides what a failure means. Until COMMIT is on its way, surely nothing happened. */
type Phase = 'connecting' | 'working' | 'committing';

interface Effect {
  readonly classified: Classified;
  readonly answer: unknown;
}

/**
 * Sends to one PostgreSQL database. The effect and its dedupe row are one transaction, so a key has one effect however
 * often it is sent. Throws `TrueupError` (`TRU_CONFIG_TARGET`) when the target has no postgres address.
 */
export function createSqlSender(options: { readonly targetName: string; readonly target: Target }): Sender {
  const { targetName, target } = options;
  const pool = openPool(targetUrl(targetName, target, ['postgres:', 'postgresql:'], 'sql'), target);
  const readiness = new Readiness();
  let tableSeen = false;

  async function send(payload: Payload, context: SendContext): Promise<Outcome> {
    const startedAt = performance.now();
    const { signal } = context;
    let phase: Phase = 'connecting';
    const request =
      payload.type === 'sql'
        ? { statement: payload.statement, values: payload.values, idempotencyKey: context.idempotencyKey }
        : null;
    try {
      if (payload.type !== 'sql')
        throw new KnownFailure(
          'fatal',
          'wrong-payload',
          `a sql target cannot send a "${payload.type}" payload`,
        );
      if (pool.idleCount === 0) readiness.throwKnownFailure();
      const effect = await withClient(pool, signal, async (client) => {
        phase = 'working';
        if (!tableSeen) await untilDeadline(signal, () => ensureDedupeTable(client));
        tableSeen = true;
        const leftMs = target.timeout.answer - (performance.now() - startedAt);
        await untilDeadline(signal, () => client.query(begin(leftMs)));
        return await work(client, payload, context, () => {
          phase = 'committing';
        });
      });
      return outcome(effect.classified, { request, answer: effect.answer, startedAt });
    } catch (error) {
      // Somebody dropped the dedupe table, perhaps: the next send looks again.
      if (codeOf(error) === '42P01') tableSeen = false;
      return outcome(classifyFailure(error, phase), { request, error: errorRecord(error), startedAt });
    }
  }

  return {
    async warm() {
      if (pool.idleCount > 0) readiness.opened();
      if (pool.idleCount > 0 || pool.totalCount >= target.concurrency) return;
      await pool.connect().then(
        (client) => {
          readiness.opened();
          client.release();
        },
        (error: unknown) => readiness.failed(error), // The send reports it.
      );
    },
    ready: () => readiness.ready(pool.idleCount > 0),
    send,
    close: () => pool.end(),
  };
}

function openPool(url: URL, target: Target): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url.href,
    application_name: 'trueup',
    max: target.concurrency,
    connectionTimeoutMillis: target.timeout.connect,
    keepAlive: true,
    // Longer than the pauses between slots: a send needs a connection that is open already.
    idleTimeoutMillis: 60_000,
    allowExitOnIdle: true,
    // Returned values are kept as the server writes them; a number or a Date could lose digits.
    types: { getTypeParser: () => (text: string) => text },
  });
  // An idle connection was lost. The pool has removed it already, and the next send opens another.
  pool.on('error', () => undefined);
  return pool;
}

/**
 * Gives the connection back rolled back and clean, or closes it. Closing is also how an abandoned statement ends: the
 * server rolls back what was not committed.
 */
async function withClient<T>(
  pool: pg.Pool,
  signal: AbortSignal,
  use: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await connect(pool, signal);
  // A connection that breaks between two queries reports it here; the next query fails with it.
  const onError = () => undefined;
  client.on('error', onError);
  let clean = false;
  try {
    const result = await use(client);
    clean = true;
    return result;
  } catch (error) {
    clean = error instanceof KnownFailure || isStatementError(error) ? await rollback(client, signal) : false;
    throw error;
  } finally {
    client.off('error', onError);
    client.release(!clean);
  }
}

async function connect(pool: pg.Pool, signal: AbortSignal): Promise<pg.PoolClient> {
  let asked: Promise<pg.PoolClient> | undefined;
  try {
    return await untilDeadline(signal, () => {
      asked = pool.connect();
      return asked;
    });
  } catch (error) {
    // After the deadline a connection may still come; it belongs back in the pool.
    void asked?.then(
      (client) => client.release(),
      () => undefined,
    );
    throw error;
  }
}

async function rollback(client: pg.PoolClient, signal: AbortSignal): Promise<boolean> {
  try {
    await untilDeadline(signal, () => client.query('rollback'));
    return true;
  } catch {
    // The connection is closed instead, which rolls back as surely.
    return false;
  }
}

/** The server gives up shortly before the worker does, so that the answer says why. Limits hold for this transaction. */
function begin(leftMs: number): string {
  const statementMs = Math.max(1, Math.floor(leftMs));
  const lockMs = Math.max(1, Math.floor(leftMs * 0.8));
  return (
    'begin isolation level read committed; ' +
    `set local statement_timeout = ${statementMs}; ` +
    `set local lock_timeout = ${lockMs}; ` +
    `set local idle_in_transaction_session_timeout = ${statementMs}`
  );
}

async function work(
  client: pg.PoolClient,
  payload: SqlPayload,
  context: SendContext,
  onCommit: () => void,
): Promise<Effect> {
  const { signal, idempotencyKey: key, traceId } = context;
  const row = { key, traceId, fingerprint: fingerprint(payload), result: `{"rows":${payload.expectRows}}` };
  const claimed = await untilDeadline(signal, () => claimKey(client, row));
  if (claimed.kind === 'other-payload')
    throw new KnownFailure(
      'conflict',
      'conflict',
      `the key ${key} was already used for another statement or values`,
    );
  if (claimed.kind === 'repeated') {
    await untilDeadline(signal, () => client.query('rollback'));
    return { classified: known('accepted', 'deduplicated'), answer: JSON.parse(claimed.result) };
  }
  // "extended" makes the server refuse several statements even when there are no values.
  const query: pg.QueryConfig & { queryMode: 'extended' } = {
    text: payload.statement,
    values: [...payload.values],
    queryMode: 'extended',
  };
  const done = await untilDeadline(signal, () => client.query(query));
  const rows = done.rowCount ?? 0;
  if (rows !== payload.expectRows)
    throw new KnownFailure(
      'fatal',
      `rows-${rows}-expected-${payload.expectRows}`,
      `the statement touched ${rows} rows instead of ${payload.expectRows}; everything was rolled back`,
    );
  const committed = await untilDeadline(signal, () => {
    onCommit();
    return client.query('commit');
  });
  if (committed.command !== 'COMMIT')
    throw new KnownFailure(
      'retryable',
      'rolled-back',
      `the server answered COMMIT with ${committed.command}`,
    );
  return { classified: known('accepted', 'committed'), answer: { rows, returned: storable(done.rows) } };
}

function classifyFailure(error: unknown, phase: Phase): Classified {
  if (error instanceof KnownFailure) return known(error.class, error.code);
  if (phase === 'committing') {
    // An answered COMMIT that failed (a deferred constraint, a serialization failure) rolled back.
    if (isStatementError(error)) return classifyError(error, { sent: false });
    return known('unknown', error instanceof DeadlinePassed ? 'timeout-after-send' : 'commit-unanswered');
  }
  if (error instanceof DeadlinePassed)
    return phase === 'connecting'
      ? known('target-down', 'timeout-before-send')
      : known('retryable', 'timeout-rolled-back');
  return classifyError(error, { sent: false });
}

/**
 * The server answered about this statement and the session goes on. Not so: lost connections (08), a server that shuts
 * down or cuts the session (57P, 25P03), system and internal errors (58, XX).
 */
function isStatementError(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !/^(08|57P|25P03|58|XX)/.test(error.code ?? 'XX');
}

function fingerprint(payload: SqlPayload): string {
  const text = JSON.stringify([payload.statement, payload.values, payload.expectRows]);
  return createHash('sha256').update(text).digest('hex');
}
