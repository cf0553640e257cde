import pg from 'pg';
import { KnownFailure } from './known-failure.ts';

/**
 * The table in the target's own database that makes a repeated key do nothing. Its row is written in the transaction of
 * the effect, so a row that can be seen always stands for an effect that was committed.
 */
const DEDUPE_TABLE_DDL = `create table if not exists trueup_dedupe (
  idempotency_key text primary key,
  fingerprint     text not null,
  result          jsonb not null,
  trace_id        text,
  created_at      timestamptz not null default now()
)`;

/** Two sessions that create the table at once would collide in the catalogue in spite of "if not exists". */
const LOCK = `select pg_advisory_xact_lock(hashtext('trueup_dedupe'))`;

/**
 * Creates the table in the first schema of the search_path, unless one is found there or further along. Throws
 * `KnownFailure` that names the DDL when this user may not create it.
 */
export async function ensureDedupeTable(client: pg.ClientBase): Promise<void> {
  const found = await client.query<{ found: string | null }>(`select to_regclass('trueup_dedupe') as found`);
  if (found.rows[0]?.found != null) return;
  try {
    await client.query(`begin; ${LOCK}; ${DEDUPE_TABLE_DDL}; commit`);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    await client.query('rollback');
    if (error.code !== '42501' && error.code !== '3F000') throw error;
    // The target as a whole is not ready: it is held, instead of handing every record to a person (rule 6.12).
    throw new KnownFailure(
      'target-down',
      'dedupe-table-missing',
      'the table trueup_dedupe does not exist and this user may not create it. Let its owner run: ' +
        `${DEDUPE_TABLE_DDL.replace(/\s+/g, ' ')}; grant select, insert on trueup_dedupe to this user`,
      { cause: error },
    );
  }
}

export type DedupeRow =
  | { readonly kind: 'first' }
  | { readonly kind: 'repeated'; readonly result: string }
  | { readonly kind: 'other-payload' };

/**
 * Takes the key for this transaction. Another transaction that holds it is waited for: when it commits, this is a
 * repetition, when it rolls back, this is the first.
 */
export async function claimKey(
  client: pg.ClientBase,
  row: {
    readonly key: string;
    readonly fingerprint: string;
    readonly traceId: string;
    /** JSON that a repetition of the key is answered with. */
    readonly result: string;
  },
): Promise<DedupeRow> {
  const inserted = await client.query(
    `insert into trueup_dedupe (idempotency_key, fingerprint, trace_id, result) values ($1, $2, $3, $4)
     on conflict (idempotency_key) do nothing`,
    [row.key, row.fingerprint, row.traceId, row.result],
  );
  if (inserted.rowCount === 1) return { kind: 'first' };
  const stored = await client.query<{ fingerprint: string; result: string }>(
    'select fingerprint, result::text as result from trueup_dedupe where idempotency_key = $1',
    [row.key],
  );
  const earlier = stored.rows[0];
  if (earlier === undefined)
    throw new KnownFailure(
      'retryable',
      'dedupe-row-gone',
      'the dedupe row of this key was deleted meanwhile',
    );
  if (earlier.fingerprint !== row.fingerprint) return { kind: 'other-payload' };
  return { kind: 'repeated', result: earlier.result };
}
