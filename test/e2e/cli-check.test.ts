import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { trueup, trueupJson } from '../support/e2e-cli.ts';
import { writeConfig } from '../support/e2e-config.ts';
import { createOrders, type OrdersDatabase } from '../support/e2e-orders.ts';
import { startServer } from '../support/http-server.ts';
import { sparePort } from '../support/spare-port.ts';

const PASSWORD = 'planted-password-4711';
const stops: (() => Promise<void>)[] = [];
let dir: string;
let data: OrdersDatabase;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'trueup-e2e-cli-'));
  stops.push(() => rm(dir, { recursive: true, force: true }));
  data = await createOrders();
  stops.push(() => data.drop());
  await data.place([{ no: 'A-1' }, { no: 'A-2' }]);
  await data.book([{ no: 'A-1' }]);
});
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function configFile(config: Record<string, unknown>): Promise<string> {
  const file = await writeConfig(config);
  stops.push(() => file.remove());
  return file.path;
}

const postgres = (url: string) => ({
  type: 'postgres',
  url,
  table: 'orders',
  time: 'updated_at',
  fields: ['amount'],
});

const pairOf = (source: object, downstream: object) => ({
  version: 1,
  reconciliations: {
    orders: {
      window: { lookback: '1h' },
      source,
      downstream,
      key: ['order_no'],
      compare: { amount: 'decimal' },
    },
  },
});

describe('check', () => {
  it('says of an unreachable database which side, which host and what to check, and hides the password', async () => {
    const port = await sparePort();
    const away = `postgres://reader:${PASSWORD}@127.0.0.1:${port}/shop`;
    const path = await configFile(pairOf(postgres(data.url), postgres(away)));
    const { code, stdout, stderr } = await trueup(['check', '--config', path]);
    expect(code).toBe(75);
    const line = stdout.split('\n').find((text) => text.includes('ECONNREFUSED'));
    expect(line).toMatch(
      new RegExp(`^ +downstream: orders downstream postgres shop\\.orders at 127\\.0\\.0\\.1:${port}: `),
    );
    expect(line).toContain('check host and port');
    expect(stdout + stderr).not.toContain(PASSWORD);
    // The side that answers is described all the same.
    expect(stdout).toMatch(/^ +source: postgres \w+\.orders$/m);
  });

  /** An address like that of the data, changed. */
  const address = (
    change: Partial<Record<'username' | 'password' | 'pathname' | 'hostname' | 'search', string>>,
  ) => Object.assign(new URL(data.url), { password: PASSWORD, ...change }).href;

  it('ends with 75 for a database that is another than the file says, and tells side, host and what to check', async () => {
    const role = `barred_${randomBytes(8).toString('hex')}`;
    await data.pool.query(`create role ${role} nologin password '${PASSWORD}'`);
    stops.push(async () => void (await data.pool.query(`drop role ${role}`)));
    const right = new URL(data.url).password;
    const wrong: Record<string, [url: string, said: RegExp]> = {
      password: [address({}), /password authentication failed .*check user and password/],
      database: [
        address({ password: right, pathname: '/no_such_database' }),
        /"no_such_database" does not exist \(check the name of the database/,
      ],
      role: [address({ username: role }), /not permitted to log in \(.*the role may log in/],
      host: [address({ hostname: 'no-such-host.invalid' }), /check the host name/],
      tls: [
        address({ password: right, search: 'sslmode=verify-full' }),
        /does not support SSL .*check TLS: sslmode/,
      ],
    };
    const { orders } = pairOf(postgres(data.url), postgres(data.url)).reconciliations;
    const path = await configFile({
      version: 1,
      reconciliations: Object.fromEntries(
        Object.entries(wrong).map(([name, [url]]) => [name, { ...orders, downstream: postgres(url) }]),
      ),
    });
    const { code, stdout, stderr } = await trueup(['check', '--config', path]);
    expect(code).toBe(75);
    for (const [name, [url, said]] of Object.entries(wrong)) {
      const { hostname, port } = new URL(url);
      const line = stdout
        .split('\n')
        .find((text) => text.startsWith(`  downstream: ${name} downstream postgres`));
      expect(line, name).toContain(`.orders at ${hostname}:${port}: `);
      expect(line, name).toMatch(said);
    }
    for (const secret of [PASSWORD, right]) expect(stdout + stderr).not.toContain(secret);
  });

  it('ends with 2 for a wrong table or column, since the file is wrong, also beside a server that is away', async () => {
    const path = await configFile({
      version: 1,
      reconciliations: {
        tables: {
          ...pairOf({ ...postgres(data.url), table: 'Orders' }, postgres(address({}))).reconciliations.orders,
        },
        columns: {
          ...pairOf({ ...postgres(data.url), time: 'updatedAt' }, postgres(data.url)).reconciliations.orders,
        },
      },
    });
    const { code, stdout } = await trueup(['check', '--config', path]);
    expect(code).toBe(2);
    expect(stdout).toMatch(/source: .*"Orders" does not exist \(.*check schema and upper case/);
    expect(stdout).toMatch(/source: .*updatedAt.*check key, time and fields/);
  });

  it('looks up sample keys of one side on the other, so that a call that only looks up is tried too', async () => {
    const api = await startServer((_, response) => {
      response.statusCode = 401;
      response.end('{}');
    });
    stops.push(() => api.close());
    const http = { type: 'http', target: 'api', lookup: { path: '/o/{key}' }, key: { order_no: '/no' } };
    const path = await configFile({
      ...pairOf(postgres(data.url), { ...http, fields: { amount: '/amount' } }),
      targets: { api: { url: api.url } },
    });
    const refused = await trueup(['check', '--config', path]);
    expect(refused.code).toBe(75);
    expect(refused.stdout).toMatch(
      new RegExp(
        `downstream: .* at 127.0.0.1:${api.port}: GET /o/A-1: answered 401 \\(check the credentials`,
      ),
    );
    await data.pool.query(
      "create table if not exists elsewhere as select 'X' || order_no as order_no, amount, updated_at from orders",
    );
    const strange = await configFile(
      pairOf(postgres(data.url), { ...postgres(data.url), table: 'elsewhere' }),
    );
    const { stdout } = await trueup(['check', '--config', strange]);
    expect(stdout).toMatch(
      /warning: of 2 sample keys of the source, 0 are here; see that both sides write A-1, A-2/,
    );
  });

  it('shows the plan, the key order and sample rows, and says that a key is not unique', async () => {
    await data.pool.query('create table if not exists loose as select * from orders');
    const path = await configFile(pairOf({ ...postgres(data.url), table: 'loose' }, postgres(data.url)));
    const { code, stdout } = await trueup(['check', 'orders', '--config', path]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/plan: \w+ \(.+\)/);
    expect(stdout).toMatch(/^ +A-1: .*amount 12\.5/m);
    expect(stdout).toMatch(/no unique index on \(order_no\)/);
  });

  it('warns of a key that only one side can know', async () => {
    const side = { ...postgres(data.url), table: 'bookings', time: 'booked_at' };
    const pair = pairOf(side, side).reconciliations.orders;
    const path = await configFile({ version: 1, reconciliations: { orders: { ...pair, key: ['id'] } } });
    const { code, stdout } = await trueup(['check', '--config', path]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/warning: id is numbered by this database/);
  });

  it('prints a side whole with --format json', async () => {
    const path = await configFile(pairOf(postgres(data.url), postgres(data.url)));
    const report = await trueupJson<Record<string, unknown>>(['check', '--config', path]);
    expect(report).toMatchObject({
      reconciliation: 'orders',
      plan: { name: 'merge' },
      sides: [
        { side: 'source', error: null },
        { side: 'downstream', error: null },
      ],
    });
  });
});

describe('a store that cannot be opened', () => {
  it.each(['run', 'up', 'worker', 'apply', 'doctor'])(
    'ends %s with 75, the server and what to check, and without its password',
    async (name) => {
      const wrong = new URL(data.url);
      wrong.password = PASSWORD;
      const { hostname, port, pathname } = wrong;
      const path = await configFile(pairOf(postgres(data.url), postgres(data.url)));
      const args = name === 'run' ? ['run', 'orders', '--last', '1h'] : [name];
      const said = await trueup([...args, '--config', path], { env: { DATABASE_URL: wrong.href } });
      expect(said.code).toBe(75);
      expect(said.stderr).toContain(`the store, database ${pathname.slice(1)} at ${hostname}:${port}: `);
      expect(said.stderr).toContain('check user and password (DATABASE_URL or store.url)');
      expect(said.stdout + said.stderr).not.toContain(PASSWORD);
    },
  );
});
