import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proposePair } from '../../src/config/propose.ts';
import { Secret } from '../../src/config/secret.ts';
import { starterConfig } from '../../src/config/starter.ts';
import { SideError } from '../../src/reconcile/side.ts';
import { readCatalogue } from '../../src/reconcile/sides/postgres-catalogue.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';
import { load } from '../unit/config/in-file.ts';

const signal = () => AbortSignal.timeout(20_000);

describe('the catalogue of a PostgreSQL database', () => {
  let shop: TestDatabase;
  let ledger: TestDatabase;

  beforeAll(async () => {
    shop = await createDatabase();
    ledger = await createDatabase();
    await execute(
      shop.url,
      `create table orders (
         id bigint generated always as identity primary key, order_no varchar(40) not null unique,
         amount numeric(12, 2) not null, state text, token uuid default gen_random_uuid(),
         created_at timestamptz not null default now(), updated_at timestamptz not null default now());
       create unique index on orders (state) where state = 'open';
       create unique index on orders (lower(order_no));
       create unique index on orders (state, created_at) include (amount);
       alter table orders add column gone int; alter table orders drop column gone;
       create view open_orders as select order_no, amount from orders where state = 'open';
       create schema "Odd.Name"; create table "Odd.Name"."a.b" (id serial primary key);
       create schema trueup; create table trueup.run (id int primary key);
       create table parted (day date, no text, primary key (day, no)) partition by range (day);
       create table parted_1 partition of parted for values from ('2026-01-01') to ('2026-02-01')`,
    );
    await execute(
      ledger.url,
      `create table order_copies (id serial primary key, "orderNo" text not null unique, amount bigint, state text,
         updated_at timestamptz not null)`,
    );
  });

  afterAll(async () => {
    await shop?.drop();
    await ledger?.drop();
  });

  it('lists tables, columns and full unique keys, without the system and the store', async () => {
    const { tables } = await readCatalogue(new Secret(shop.url), signal());
    expect(tables.map((table) => `${table.schema}.${table.name}`)).toEqual([
      'Odd.Name.a.b',
      'public.open_orders',
      'public.orders',
      'public.parted',
    ]);
    const orders = tables[2];
    expect(orders).toMatchObject({ primaryKey: ['id'], uniqueKeys: [['order_no'], ['state', 'created_at']] });
    expect(orders?.columns).toEqual([
      { name: 'id', native: 'bigint', nullable: false, generated: true },
      { name: 'order_no', native: 'character varying(40)', nullable: false, generated: false },
      { name: 'amount', native: 'numeric(12,2)', nullable: false, generated: false },
      { name: 'state', native: 'text', nullable: true, generated: false },
      { name: 'token', native: 'uuid', nullable: true, generated: true },
      { name: 'created_at', native: 'timestamp with time zone', nullable: false, generated: false },
      { name: 'updated_at', native: 'timestamp with time zone', nullable: false, generated: false },
    ]);
    expect(tables[0]?.columns[0]).toMatchObject({ name: 'id', generated: true });
    expect(tables[1]).toMatchObject({ primaryKey: [], uniqueKeys: [] });
    expect(tables[3]?.primaryKey).toEqual(['day', 'no']);
  });

  it('leads to a proposal and a config that loads', async () => {
    const proposed = proposePair(
      await readCatalogue(new Secret(shop.url), signal()),
      await readCatalogue(new Secret(ledger.url), signal()),
    );
    if (proposed === undefined) throw new Error('nothing was proposed');
    expect(proposed).toMatchObject({ name: 'orders', key: ['order_no'], warnings: [] });
    const yaml = starterConfig({
      ...proposed,
      source: { ...proposed.source, urlEnv: 'SHOP_URL' },
      downstream: { ...proposed.downstream, urlEnv: 'LEDGER_URL' },
    });
    const { config } = await load(yaml, { SHOP_URL: shop.url, LEDGER_URL: ledger.url });
    expect(config.reconciliations['orders']).toMatchObject({
      source: { table: 'public.orders', time: 'updated_at', fields: ['amount', 'state'] },
      downstream: { table: 'public.order_copies', time: 'updated_at', key: { order_no: 'orderNo' } },
      compare: { amount: { type: 'decimal' }, state: { type: 'text' } },
    });
  });

  it('is refused with the host and without the password', async () => {
    const url = new URL(shop.url);
    url.pathname = '/no_such_database';
    url.password = 'planted-password';
    const error = await readCatalogue(new Secret(url.href), signal()).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SideError);
    expect(error).toMatchObject({ code: 'TRU_SIDE_REFUSED', transient: false });
    expect(String(error)).toContain(url.host);
    expect(String(error)).not.toContain('planted');
  });

  it('is unreachable when nothing listens, and stops when it is told to', async () => {
    const { hostname, port } = new URL(shop.url);
    const proxy = await startProxy({ host: hostname, port: Number(port) });
    try {
      await proxy.mode('refuse');
      await expect(readCatalogue(new Secret(proxy.url(shop.url)), signal())).rejects.toMatchObject({
        code: 'TRU_SIDE_UNREACHABLE',
        transient: true,
      });
      await proxy.mode('black-hole');
      const stop = new AbortController();
      const reading = readCatalogue(new Secret(proxy.url(shop.url)), stop.signal);
      await until('the client has sent its first bytes', async () => proxy.lostBytes() > 0);
      stop.abort(new Error('enough'));
      await expect(reading).rejects.toThrow('enough');
    } finally {
      await proxy.close();
    }
  });
});

async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
