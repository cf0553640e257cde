import pg from 'pg';

export type KeyKind = 'ordered' | 'uuid';

const DATABASE = 'trueup_bench';

/** Planted per million records. Renamed ones are missing under one key and extra under another. */
const PLANTED = { missing: 333, renamed: 334, mismatched: 333 } as const;

export interface Expected {
  readonly missing: number;
  readonly extra: number;
  readonly mismatched: number;
}

export function expectedFor(rows: number): Expected {
  const share = (perMillion: number) => Math.max(1, Math.round((rows * perMillion) / 1_000_000));
  const renamed = share(PLANTED.renamed);
  return { missing: share(PLANTED.missing) + renamed, extra: renamed, mismatched: share(PLANTED.mismatched) };
}

/** Makes the benchmark's own database, sorted by bytes and without parallel plans. Returns its address. */
export async function createBenchDatabase(server: string): Promise<string> {
  await execute(server, [
    `drop database if exists ${DATABASE} with (force)`,
    `create database ${DATABASE} template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C'`,
    `alter database ${DATABASE} set max_parallel_workers_per_gather = 0`,
    `alter database ${DATABASE} set jit = off`,
  ]);
  const url = new URL(server);
  url.pathname = `/${DATABASE}`;
  return url.href;
}

export async function dropBenchDatabase(server: string): Promise<void> {
  await execute(server, [`drop database if exists ${DATABASE} with (force)`]);
}

const KEYS: Readonly<Record<KeyKind, { type: string; value: string; other: string }>> = {
  ordered: {
    type: 'text',
    value: "'ORD20260101-' || lpad(i::text, 8, '0')",
    other: "order_no || 'X'",
  },
  uuid: { type: 'uuid', value: 'md5(i::text)::uuid', other: 'md5(order_no::text)::uuid' },
};

/**
 * Fills `source`, its exact copy `equal`, and `differing` with planted differences. The copies are loaded in another
 * order than the source, and all are in the cache afterwards.
 */
export async function fillTables(url: string, kind: KeyKind, rows: number): Promise<void> {
  const { type, value, other } = KEYS[kind];
  const { missing, extra, mismatched } = expectedFor(rows);
  const only = missing - extra;
  const step = Math.floor(rows / (only + extra + mismatched));
  // Evenly spread: each place is the first row of a stretch that has one difference.
  const nth = (from: number, to: number) =>
    `order_no in (select order_no from planted where n >= ${from} and n < ${to})`;
  const copy = (name: string) =>
    `insert into ${name} select * from source order by (user_id / 1024), md5(user_id::text)`;
  await execute(url, [
    'drop table if exists source, equal, differing, planted',
    ...['source', 'equal', 'differing'].map(
      (
        name,
      ) => `create table ${name} (order_no ${type} primary key, user_id bigint not null, status text not null,
        amount numeric(18, 2) not null, currency char(3) not null, updated_at timestamptz not null, memo text)
        with (autovacuum_enabled = off)`,
    ),
    `insert into source select ${value}, i, (array['NEW', 'PAID', 'SENT'])[1 + i % 3], (i::bigint * 7919 % 1000000)::numeric / 100,
       'EUR', timestamptz '2026-01-01 00:00+00' + i * interval '10 milliseconds',
       case when i % 5 = 0 then null else 'memo of order ' || i end
     from generate_series(1, ${rows}) i`,
    copy('equal'),
    copy('differing'),
    `create table planted as select order_no, (user_id / ${step})::int as n from source where user_id % ${step} = 1`,
    `delete from differing where ${nth(0, only)}`,
    `update differing set order_no = ${other} where ${nth(only, only + extra)}`,
    `update differing set amount = amount + 0.01 where ${nth(only + extra, only + extra + mismatched)}`,
    ...['source', 'equal', 'differing'].map((name) => `vacuum (freeze, analyze) ${name}`),
    'checkpoint',
  ]);
}

async function execute(url: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
