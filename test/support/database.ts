import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

export interface TestDatabase {
  readonly url: string;
  /** Also cuts the connections that are still open. */
  drop(): Promise<void>;
}

/** A fresh empty database on the embedded PostgreSQL of this test run. */
export function createDatabase(): Promise<TestDatabase> {
  return create('template1');
}

/** A fresh database with trueup's migrations applied in the schema `trueup`. */
export async function createStore(): Promise<TestDatabase> {
  const store = await create('trueup_template');
  // The queue's namespace is the store's id; clones of one template would share a Redis namespace.
  await execute(store.url, 'update trueup.meta set store_id = gen_random_uuid()');
  return store;
}

async function create(template: string): Promise<TestDatabase> {
  const admin = inject('postgresUrl');
  const name = `test_${randomBytes(8).toString('hex')}`;
  await execute(admin, `create database ${name} template ${template}`);
  const url = new URL(admin);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: () => execute(admin, `drop database if exists ${name} with (force)`),
  };
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
