import { readdir } from 'node:fs/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { type Db, openDatabase } from '../../../src/store/database.ts';
import { APP_LEVEL, assertSchema, migrate, schemaState } from '../../../src/store/migrate.ts';
import { createDatabase } from '../../support/database.ts';

const NAMES = (await readdir(new URL('../../../migrations/', import.meta.url)))
  .map((file) => file.replace('.up.sql', ''))
  .sort();
const LATEST = Number(NAMES.at(-1)?.slice(0, 4));

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function emptyDatabase(): Promise<string> {
  const database = await createDatabase();
  cleanUp.push(() => database.drop());
  return database.url;
}

function open(url: string, schema?: string): Db {
  const db = openDatabase(url, {
    applicationName: 'trueup-test',
    ...(schema === undefined ? {} : { schema }),
  });
  cleanUp.push(() => db.destroy());
  return db;
}

describe('migrate', () => {
  test('of four starters at once one migrates and the others wait for it', async () => {
    const url = await emptyDatabase();
    const starters = [open(url), open(url), open(url), open(url)];
    const results = await Promise.all(starters.map((db) => migrate(db)));
    // The lock is per migration: each is applied once, by whichever starter came first.
    expect(results.flatMap((result) => result.applied).toSorted()).toEqual(NAMES);
    for (const db of starters) expect(await schemaState(db)).toEqual({ state: 'current', applied: LATEST });
    expect(await migrate(open(url))).toEqual({ applied: [] });
  });

  test('a migration that was edited after it landed is refused', async () => {
    const db = open(await emptyDatabase());
    await migrate(db);
    await db('schema_migration').update({ checksum: 'as it was' });
    await expect(migrate(db)).rejects.toMatchObject({
      code: 'TRU_MIGRATION_EDITED',
      exit: 5,
      message: 'migration 0001_store was edited after it landed in this store',
    });
  });

  test('a migration that fails leaves nothing behind and can be run again', async () => {
    const db = open(await emptyDatabase());
    await db.raw('create schema trueup');
    await db.raw('create table gate (in_the_way integer)');
    await expect(migrate(db)).rejects.toThrow('already exists');
    expect(await schemaState(db)).toEqual({ state: 'missing' });
    await db.raw('drop table gate');
    expect(await migrate(db)).toEqual({ applied: NAMES });
  });

  test('two schemas in one database are two stores', async () => {
    const url = await emptyDatabase();
    const one = open(url);
    const two = open(url, 'Team "B"');
    await migrate(one);
    expect(await schemaState(two)).toEqual({ state: 'missing' });
    await migrate(two);
    const { store_id: first } = await one('meta').first('store_id');
    const { store_id: second } = await two('meta').first('store_id');
    expect(first).not.toBe(second);
  });

  test('a role that may not create schemas migrates in the one it was given', async () => {
    const url = await emptyDatabase();
    const admin = open(url);
    const role = `plain_${process.pid}_${Date.now()}`;
    await admin.raw(`create role ?? login password 'x'`, [role]);
    await admin.raw('create schema trueup authorization ??', [role]);
    cleanUp.push(async () => {
      await admin.raw('drop owned by ??', [role]);
      await admin.raw('drop role ??', [role]);
    });
    const limited = new URL(url);
    limited.username = role;
    limited.password = 'x';
    expect(await migrate(open(limited.href))).toEqual({ applied: NAMES });
  });
});

describe('the state of the schema', () => {
  test('an empty database is missing the schema, and the error says what to run', async () => {
    const db = open(await emptyDatabase());
    expect(await schemaState(db)).toEqual({ state: 'missing' });
    await expect(assertSchema(db)).rejects.toMatchObject({
      code: 'TRU_SCHEMA_MISSING',
      exit: 5,
      hint: 'run: trueup migrate',
    });
  });

  test('a store that lacks a migration of this app is behind', async () => {
    const db = open(await emptyDatabase());
    await migrate(db);
    await db('schema_migration').delete();
    await db('schema_migration').insert({ number: 0, name: '0000_before', checksum: 'x' });
    expect(await schemaState(db)).toEqual({ state: 'behind', applied: 0, pending: NAMES });
    await expect(assertSchema(db)).rejects.toMatchObject({ code: 'TRU_SCHEMA_BEHIND', exit: 5 });
  });

  test('a store that a newer release migrated and still opens to this app is worked on', async () => {
    const db = open(await emptyDatabase());
    await migrate(db);
    await db('schema_migration').insert({ number: 9999, name: '9999_later', checksum: 'x' });
    expect(await schemaState(db)).toEqual({ state: 'ahead-compatible', applied: 9999 });
    await assertSchema(db);
    expect(await migrate(db)).toEqual({ applied: [] });
  });

  test('a store that demands a newer app is refused', async () => {
    const db = open(await emptyDatabase());
    await migrate(db);
    await db('schema_migration').insert({ number: 9999, name: '9999_later', checksum: 'x' });
    await db('meta').update({ oldest_app: APP_LEVEL + 1 });
    expect(await schemaState(db)).toEqual({ state: 'too-new', applied: 9999, oldestApp: APP_LEVEL + 1 });
    await expect(assertSchema(db)).rejects.toMatchObject({ code: 'TRU_SCHEMA_TOO_NEW', exit: 5 });
    await expect(migrate(db)).rejects.toMatchObject({ code: 'TRU_SCHEMA_TOO_NEW', exit: 5 });
  });

  test('a migration numbered below what the store has is refused', async () => {
    const db = open(await emptyDatabase());
    await migrate(db);
    await db('schema_migration').delete();
    await db('schema_migration').insert({ number: 9999, name: '9999_later', checksum: 'x' });
    await expect(migrate(db)).rejects.toMatchObject({ code: 'TRU_MIGRATION_ORDER', exit: 5 });
  });
});
