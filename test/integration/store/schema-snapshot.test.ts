import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { TRANSITIONS } from '../../../src/compensate/state.ts';
import type { Db } from '../../../src/store/database.ts';
import { storeForFile } from './store.ts';

const SNAPSHOT = new URL('../../snapshots/schema.txt', import.meta.url);
const store = storeForFile();

/**
 * What the catalogue says about the migrated schema. A change here is a change that running stores will see:
 * `UPDATE_SNAPSHOT=1 npx vitest run test/integration/store/schema-snapshot.test.ts` writes the file anew.
 */
test('the migrated schema is the one that was reviewed', async () => {
  const found = await readCatalogue(store.db);
  const { UPDATE_SNAPSHOT } = process.env;
  if (UPDATE_SNAPSHOT === '1') {
    await mkdir(new URL('.', SNAPSHOT), { recursive: true });
    await writeFile(SNAPSHOT, found);
  }
  expect(found).toBe(await readFile(SNAPSHOT, 'utf8'));
});

test('the database knows the same changes of state as the state machine', async () => {
  const code = Object.entries(TRANSITIONS).flatMap(([before, row]) =>
    [...new Set(Object.values(row))].map((after) => `${before} -> ${after}`),
  );
  const rows = await store.db('compensation_transition').select('before', 'after');
  expect(rows.map(({ before, after }) => `${before} -> ${after}`).toSorted()).toEqual(code.toSorted());
});

async function readCatalogue(db: Db): Promise<string> {
  const tables = new Map<string, string[]>();
  for (const [kind, sql] of Object.entries(CATALOGUE)) {
    const { rows } = await db.raw<{ rows: { table: string; line: string }[] }>(sql);
    for (const { table, line } of rows)
      tables.set(table, [...(tables.get(table) ?? []), `  ${kind}: ${line}`]);
  }
  const { rows: functions } = await db.raw<{ rows: { line: string }[] }>(
    `select pg_get_functiondef(oid) as line from pg_proc where pronamespace = 'trueup'::regnamespace order by proname`,
  );
  return [
    ...[...tables].flatMap(([table, lines]) => [`table ${table}`, ...lines, '']),
    ...functions.map(({ line }) => line),
  ].join('\n');
}

const CATALOGUE = {
  column: `select c.relname as table, concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
      case when a.attnotnull then 'not null' end,
      case when a.attidentity = 'a' then 'generated always as identity' end,
      'default ' || pg_get_expr(d.adbin, d.adrelid)) as line
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = 'trueup'::regnamespace and c.relkind = 'r' order by c.relname collate "C", a.attnum`,
  // 'n': PostgreSQL 18 lists not-null constraints too; the columns already say it.
  constraint: `select c.relname as table, pg_get_constraintdef(k.oid) as line
    from pg_constraint k join pg_class c on c.oid = k.conrelid
    where k.connamespace = 'trueup'::regnamespace and k.contype <> 'n'
    order by c.relname collate "C", k.contype, pg_get_constraintdef(k.oid) collate "C"`,
  index: `select tablename as table, indexdef as line from pg_indexes
    where schemaname = 'trueup' order by tablename collate "C", indexname collate "C"`,
  trigger: `select c.relname as table, pg_get_triggerdef(t.oid) as line
    from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = 'trueup'::regnamespace and not t.tgisinternal order by c.relname collate "C", t.tgname`,
};
