import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDatabase } from '../support/database.ts';
import { trueup } from '../support/e2e-cli.ts';
import { createOrders, type OrdersDatabase } from '../support/e2e-orders.ts';

const stops: (() => Promise<void>)[] = [];
let dir: string;
let data: OrdersDatabase;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'trueup-e2e-init-'));
  stops.push(() => rm(dir, { recursive: true, force: true }));
  data = await createOrders();
  stops.push(() => data.drop());
});
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

describe('init', () => {
  it('writes a config that check accepts', async () => {
    const env = { SHOP_URL: data.url, LEDGER_URL: data.url };
    const out = join(dir, 'made', 'orders.yaml');
    const tables = ['--source-table', 'orders', '--downstream-table', 'orders'];
    const args = [
      'init',
      '--source-env',
      'SHOP_URL',
      '--downstream-env',
      'LEDGER_URL',
      ...tables,
      '--out',
      out,
    ];
    const made = await trueup(args, { env });
    expect(made.stderr).toContain(`next: trueup check --config ${out}`);
    expect(made.code).toBe(0);
    // Addresses stay in the environment.
    expect(await readFile(out, 'utf8')).not.toContain(new URL(data.url).password);
    const checked = await trueup(['check', '--config', out], { env });
    expect(checked.stderr).toContain('the config is valid');
    expect(checked.code).toBe(0);

    const again = await trueup(args, { env });
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('exists already') });
  });

  describe('of two databases', () => {
    const SHOP = `
      create table orders (id bigserial primary key, order_no text not null unique, amount numeric, status text, updated_at timestamptz not null);
      create table order_lines (order_no text, line_no int, qty int, changed_at timestamptz not null, primary key (order_no, line_no));
      create table "Customers" ("customerId" uuid primary key, "fullName" text, "UpdatedAt" timestamp not null);
      create table labels (code text primary key, label text);
      create schema "Odd Place"; create table "Odd Place"."Way Bill" ("bill no" text primary key, "total amount" numeric, ts timestamptz not null);
      insert into orders (order_no, amount, status, updated_at) values ('A-1', 1, 'PAID', now());`;
    const LEDGER = `
      create table gateway_orders (reference text primary key, total numeric, state text, booked_at timestamptz not null);
      create table "orderLines" ("orderNo" text, "lineNo" bigint, qty int, primary key ("orderNo", "lineNo"));
      create table customers (customer_id uuid primary key, full_name text);
      create table labels (code text primary key, label text);
      create schema "Odd Place"; create table "Odd Place"."Way Bill" ("bill no" text primary key, "total amount" numeric, ts timestamptz not null);
      insert into gateway_orders values ('A-1', 1, 'PAID', now());`;
    const env = { SHOP_URL: '', LEDGER_URL: '' };

    beforeAll(async () => {
      for (const [name, tables] of [
        ['SHOP_URL', SHOP],
        ['LEDGER_URL', LEDGER],
      ] as const) {
        const database = await createDatabase();
        stops.push(() => database.drop());
        env[name] = database.url;
        const client = new pg.Client({ connectionString: database.url });
        await client.connect();
        await client.query(tables);
        await client.end();
      }
    });

    const init = async (out: string, source: string, downstream: string) =>
      trueup(
        [
          ...['init', '--source-env', 'SHOP_URL', '--downstream-env', 'LEDGER_URL', '--out', out],
          ...['--source-table', source, '--downstream-table', downstream],
        ],
        { env },
      );

    it.each([
      ['other names', 'orders', 'gateway_orders', /order_no is read as reference on the downstream: a guess/],
      ['a key of two columns', 'order_lines', 'orderLines', /orderLines has no timestamp column/],
      ['capitals', 'Customers', 'customers', /UpdatedAt has no time zone/],
      ['spaces', 'Odd Place.Way Bill', 'Odd Place.Way Bill', /by bill no/],
    ])('proposes for tables with %s what check accepts', async (_, source, downstream, said) => {
      const out = join(dir, 'proposed', `${source}.yaml`);
      const made = await init(out, source, downstream);
      expect(made).toMatchObject({ code: 0, stderr: expect.stringMatching(said) });
      const checked = await trueup(['check', '--config', out], { env });
      expect(checked.stderr).toContain('the config is valid');
      expect(checked.code, checked.stdout).toBe(0);
    });

    it('writes nothing that check would refuse, and says what is there instead', async () => {
      const out = join(dir, 'proposed', 'refused.yaml');
      const timeless = await init(out, 'labels', 'labels');
      expect(timeless).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('has no timestamp or date column'),
      });
      const unknown = await init(out, 'ordres', 'gateway_orders');
      expect(unknown).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/the source has no table ordres.*\n.*public\.orders/),
      });
      await expect(readFile(out)).rejects.toMatchObject({ code: 'ENOENT' });
    });
  });

  it('says which variable is not set, and asks nobody where nobody can answer', async () => {
    const unset = await trueup(['init', '--source-env', 'NOT_SET_A', '--downstream-env', 'NOT_SET_B'], {
      cwd: dir,
    });
    expect(unset).toMatchObject({ code: 2, stderr: expect.stringContaining('NOT_SET_A is not set') });
    const silent = await trueup(['init'], { cwd: dir });
    expect(silent).toMatchObject({ code: 2, stderr: expect.stringContaining('--source-env') });
  });
});
