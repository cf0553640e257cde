import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { EXIT, TrueupError } from '../error.ts';
import { type Db, inTransaction, only, schemaOf } from './database.ts';

/** What this app can work with; compared with `meta.oldest_app` of the store (rule 7.2). */
export const APP_LEVEL = 1;

/** The same folder seen from `src/store` and from `dist/store`. */
const FOLDER = new URL('../../migrations/', import.meta.url);

interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

interface Applied {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
}

/**
 * How the store's schema stands to this app. `ahead-compatible`: a newer release migrated it and still allows this
 * one; `too-new`: it no longer does.
 */
export type SchemaState =
  | { readonly state: 'missing' }
  | { readonly state: 'behind'; readonly applied: number; readonly pending: readonly string[] }
  | { readonly state: 'current'; readonly applied: number }
  | { readonly state: 'ahead-compatible'; readonly applied: number }
  | { readonly state: 'too-new'; readonly applied: number; readonly oldestApp: number };

/**
 * Brings the store's schema up to this app: applies what is missing, in order, each file in its own transaction,
 * and creates the schema first. Of several processes that start at once one migrates and the others wait for it.
 * Throws `TRU_MIGRATION_EDITED` when a file changed after it was applied, `TRU_SCHEMA_TOO_NEW` (exit 5) when the
 * store no longer allows this app. Returns the names it applied itself.
 */
export async function migrate(db: Db): Promise<{ applied: string[] }> {
  const migrations = await readMigrations();
  await inTransaction(db, async (trx) => {
    await lock(trx);
    await prepare(trx);
    if ((await readApplied(trx)).length === 0) return;
    const oldestApp = await readOldestApp(trx);
    if (oldestApp > APP_LEVEL) throw tooNew(oldestApp);
  });
  const applied: string[] = [];
  for (const migration of migrations) {
    const did = await inTransaction(db, async (trx) => {
      await lock(trx);
      return applyOnce(trx, migration, migrations);
    });
    if (did) applied.push(migration.name);
  }
  return { applied };
}

/** Compares the store's schema with this app's migrations. Reads only. */
export async function schemaState(db: Db): Promise<SchemaState> {
  const schema = schemaOf(db);
  if (!(await tableExists(db, schema, 'schema_migration'))) return { state: 'missing' };
  const done = new Set((await readApplied(db)).map((row) => row.number));
  if (done.size === 0) return { state: 'missing' };
  const migrations = await readMigrations();
  const applied = Math.max(...done);
  const oldestApp = await readOldestApp(db);
  if (oldestApp > APP_LEVEL) return { state: 'too-new', applied, oldestApp };
  const pending = migrations.filter((migration) => !done.has(migration.number));
  if (pending.length > 0) return { state: 'behind', applied, pending: pending.map(({ name }) => name) };
  return {
    state: applied > Math.max(...migrations.map(({ number }) => number)) ? 'ahead-compatible' : 'current',
    applied,
  };
}

/** Throws a `TrueupError` with exit 5 that says what to run, unless this app can work on the store as it is. */
export async function assertSchema(db: Db): Promise<void> {
  const found = await schemaState(db);
  switch (found.state) {
    case 'current':
    case 'ahead-compatible':
      return;
    case 'missing':
      throw new TrueupError('TRU_SCHEMA_MISSING', `the store has no schema "${schemaOf(db)}" of trueup yet`, {
        exit: EXIT.schema,
        hint: 'run: trueup migrate',
      });
    case 'behind':
      throw new TrueupError(
        'TRU_SCHEMA_BEHIND',
        `the store's schema is behind this version; not yet applied: ${found.pending.join(', ')}`,
        { exit: EXIT.schema, hint: 'run: trueup migrate' },
      );
    case 'too-new':
      throw tooNew(found.oldestApp);
  }
}

/** Throws `TRU_SCHEMA_TOO_NEW` (exit 5) when the store does not allow this app any more; asks for nothing else. */
export async function assertNotTooNew(db: Db): Promise<void> {
  const oldestApp = await readOldestApp(db);
  if (oldestApp > APP_LEVEL) throw tooNew(oldestApp);
}

async function applyOnce(trx: Db, migration: Migration, known: readonly Migration[]): Promise<boolean> {
  const applied = await readApplied(trx);
  const before = applied.find((row) => row.number === migration.number);
  if (before !== undefined) {
    refuseEdited(before, migration);
    return false;
  }
  const last = Math.max(0, ...applied.map((row) => row.number));
  if (last > migration.number) {
    throw new TrueupError(
      'TRU_MIGRATION_ORDER',
      `migration ${migration.name} comes before ${last}, which the store already has; this app knows ${known.length}`,
      { exit: EXIT.schema, hint: 'give the new migration the next free number' },
    );
  }
  // Knex reads a question mark as a binding, in comments and texts too.
  await trx.raw(migration.sql.replaceAll('?', '\\?'));
  await trx('schema_migration').insert({
    number: migration.number,
    name: migration.name,
    checksum: migration.checksum,
  });
  return true;
}

function refuseEdited(before: Applied, migration: Migration): void {
  if (before.checksum === migration.checksum) return;
  throw new TrueupError(
    'TRU_MIGRATION_EDITED',
    `migration ${before.name} was edited after it landed in this store`,
    { exit: EXIT.schema, hint: 'restore the file as it was and put the change into a new migration' },
  );
}

function tooNew(oldestApp: number): TrueupError {
  return new TrueupError(
    'TRU_SCHEMA_TOO_NEW',
    `the store's schema needs an app of level ${oldestApp}; this one has level ${APP_LEVEL}`,
    { exit: EXIT.schema, hint: 'install the newer trueup version that the rest of the team runs' },
  );
}

/** The schema may have been made by an administrator for a role that must not make one itself. */
async function prepare(trx: Db): Promise<void> {
  const schema = schemaOf(trx);
  const found = await trx('pg_catalog.pg_namespace').where({ nspname: schema }).first('nspname');
  if (found === undefined) await trx.raw('create schema ??', [schema]);
  if (await tableExists(trx, schema, 'schema_migration')) return;
  await trx.raw(`create table schema_migration (
    number     integer primary key,
    name       text not null,
    checksum   text not null,
    applied_at timestamptz not null default clock_timestamp()
  )`);
}

/** Held until the transaction ends, so a killed starter leaves no lock behind. */
async function lock(trx: Db): Promise<void> {
  await trx.raw('select pg_advisory_xact_lock(hashtextextended(?, 0))', [`trueup migrate ${schemaOf(trx)}`]);
}

async function tableExists(db: Db, schema: string, table: string): Promise<boolean> {
  const found = await db('pg_catalog.pg_tables')
    .where({ schemaname: schema, tablename: table })
    .first('tablename');
  return found !== undefined;
}

async function readApplied(db: Db): Promise<Applied[]> {
  return db('schema_migration').select('number', 'name', 'checksum').orderBy('number');
}

async function readOldestApp(db: Db): Promise<number> {
  const rows: { oldest_app: number }[] = await db('meta').select('oldest_app');
  return only(rows).oldest_app;
}

async function readMigrations(): Promise<Migration[]> {
  const files = (await readdir(FOLDER)).filter((file) => /^\d{4}_.+\.up\.sql$/.test(file)).sort();
  return Promise.all(
    files.map(async (file) => {
      // Line ends depend on how the file was checked out, not on what it says.
      const sql = (await readFile(new URL(file, FOLDER), 'utf8')).replaceAll('\r\n', '\n');
      const checksum = createHash('sha256').update(sql).digest('hex');
      return { number: Number(file.slice(0, 4)), name: file.slice(0, -'.up.sql'.length), sql, checksum };
    }),
  );
}
