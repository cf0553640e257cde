import { Socket } from 'node:net';
import pg from 'pg';
import type { Catalogue, CatalogueTable } from '../../config/catalogue.ts';
import type { Secret } from '../../config/secret.ts';
import type { SideError } from '../side.ts';
import { serverOf } from './connect-hint.ts';
import { toSideError } from './postgres-errors.ts';

const CONNECT_MS = 5000;
const STATEMENT_MS = 15_000;

/** Tables and views that this account may read, without the system's and trueup's own. */
const TABLES = `
select n.nspname as schema, c.relname as name,
  coalesce((
    select json_agg(json_build_object(
      'name', a.attname,
      'native', format_type(a.atttypid, a.atttypmod),
      'nullable', not a.attnotnull,
      'generated', a.attidentity <> ''
        or coalesce(pg_get_expr(d.adbin, d.adrelid) ~* '^(nextval|gen_random_uuid|uuid_generate|uuidv)', false)
    ) order by a.attnum)
    from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  ), '[]') as columns,
  coalesce((
    select json_agg(json_build_object('primary', i.indisprimary, 'columns', (
      select json_agg(a.attname order by k.place)
      from unnest(i.indkey::int2[]) with ordinality k(attnum, place)
      join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
      where k.place <= i.indnkeyatts
    )) order by i.indisprimary desc, i.indexrelid)
    from pg_index i
    where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
  ), '[]') as keys
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
  and n.nspname not in ('information_schema', 'trueup') and n.nspname !~ '^pg_'
  and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')
order by n.nspname, c.relname`;

interface Row {
  schema: string;
  name: string;
  columns: CatalogueTable['columns'];
  keys: readonly { primary: boolean; columns: readonly string[] }[];
}

/**
 * What a PostgreSQL database holds, read in one short read-only transaction. Throws `SideError` when it cannot be
 * reached or refuses, and the signal's reason when it is aborted.
 */
export async function readCatalogue(url: Secret, signal: AbortSignal): Promise<Catalogue> {
  signal.throwIfAborted();
  const { server, database } = serverOf(url.reveal());
  const where = `postgres ${database} at ${server}`;
  // A socket of our own: pg's `end()` waits for ever when the other end does not answer.
  const socket = new Socket();
  const client = new pg.Client({
    connectionString: url.reveal(),
    connectionTimeoutMillis: CONNECT_MS,
    stream: () => socket,
  });
  // A lost connection also fails the query that waits for it; without a listener it would end the process.
  let lost: Error | undefined;
  client.on('error', (error) => {
    lost = error;
  });
  const stop = (): void => void socket.destroy(new Error('aborted'));
  signal.addEventListener('abort', stop, { once: true });
  try {
    await client.connect();
    const rows = await readRows(client);
    await client.end();
    return { tables: rows.map(tableOf) };
  } catch (error) {
    socket.destroy();
    signal.throwIfAborted();
    throw sideError(where, error, lost);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

async function readRows(client: pg.Client): Promise<readonly Row[]> {
  await client.query('begin transaction isolation level repeatable read read only');
  await client.query(`set local statement_timeout = ${STATEMENT_MS}`);
  await client.query("set local search_path = 'pg_catalog'");
  const { rows } = await client.query<Row>(TABLES);
  await client.query('commit');
  return rows;
}

function tableOf(row: Row): CatalogueTable {
  return {
    schema: row.schema,
    name: row.name,
    columns: row.columns,
    primaryKey: row.keys.find((key) => key.primary)?.columns ?? [],
    uniqueKeys: row.keys.filter((key) => !key.primary).map((key) => key.columns),
  };
}

function sideError(where: string, error: unknown, lost: Error | undefined): SideError {
  const silent = error instanceof Error && error.message === '' && lost !== undefined;
  return toSideError(silent ? lost : error, where);
}
