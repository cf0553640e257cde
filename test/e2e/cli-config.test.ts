import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDatabase, createStore } from '../support/database.ts';
import { trueup, trueupJson, up } from '../support/e2e-cli.ts';
import { ordersConfig, writeConfig } from '../support/e2e-config.ts';
import { createOrders, type OrdersDatabase, startBookings } from '../support/e2e-orders.ts';
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

describe('a config with ten mistakes', () => {
  const MISTAKES = [
    'timezone',
    'targets.gateway.watermark',
    'targets.gateway.timout',
    'reconciliations.orders.mode',
    'reconciliations.orders.schedule',
    'reconciliations.orders.window.lookback',
    'reconciliations.orders.source.url',
    'reconciliations.orders.downstream.target',
    'reconciliations.orders.downstream.lookup.path',
    'reconciliations.orders.compare.amount',
  ];
  const config = {
    version: 1,
    timezone: 'Mars/Olympus',
    targets: { gateway: { url: 'http://127.0.0.1:9', watermark: 0, timout: { answer: '2s' } } },
    reconciliations: {
      orders: {
        mode: 'repair',
        schedule: '61 * * * *',
        window: { lookback: '1hour' },
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the config's own interpolation
        source: { ...postgres('x'), url: '${env:NO_SUCH_VARIABLE}' },
        downstream: {
          type: 'http',
          target: 'gatway',
          lookup: { path: 'orders' },
          key: { order_no: '/order_no' },
        },
        key: ['order_no'],
        compare: { amount: 'money' },
      },
    },
  };

  it.each(['check', 'up', 'doctor'])(
    'gets ten lines with their paths from %s, and starts nothing',
    async (name) => {
      const path = await configFile(config);
      const { code, stdout, stderr } = await trueup([name, '--config', path], { cwd: dir });
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      const lines = stderr.split('\n');
      expect(lines[0]).toBe(`${path} has 10 problems`);
      expect(lines).toHaveLength(1 + 2 * MISTAKES.length);
      for (const [index, mistake] of MISTAKES.entries()) {
        expect(lines[1 + 2 * index]).toMatch(new RegExp(`^  ${mistake}: .*\\(line \\d+, column \\d+\\)$`));
        // What to write instead.
        expect(lines[2 + 2 * index]).toMatch(/^ {6}\S/);
      }
      // No embedded server, no directory of its own.
      expect(await readdir(dir)).toEqual([]);
    },
  );
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
    expect(line).toContain('check host and port of the side’s url');
    expect(stdout + stderr).not.toContain(PASSWORD);
    // The side that answers is described all the same.
    expect(stdout).toMatch(/^ +source: postgres \w+\.orders$/m);
  });

  it('says of a wrong database which side and what to check', async () => {
    const wrong = new URL(data.url);
    wrong.pathname = '/no_such_database';
    const path = await configFile(pairOf(postgres(wrong.href), postgres(data.url)));
    const { code, stdout, stderr } = await trueup(['check', '--config', path]);
    expect(code).toBe(2);
    expect(stdout).toMatch(
      /^ +source: .*at \S+: database "no_such_database" does not exist \(check the database name/m,
    );
    expect(stdout + stderr).not.toContain(wrong.password);
  });

  it('says of a wrong table, a wrong column and a wrong password what to check', async () => {
    const reader = new URL(data.url);
    reader.password = PASSWORD;
    const path = await configFile({
      ...pairOf(postgres(data.url), postgres(data.url)),
      reconciliations: {
        tables: {
          ...pairOf({ ...postgres(data.url), table: 'Orders' }, postgres(reader.href)).reconciliations.orders,
        },
        columns: {
          ...pairOf({ ...postgres(data.url), time: 'updatedAt' }, postgres(data.url)).reconciliations.orders,
        },
      },
    });
    const { code, stdout, stderr } = await trueup(['check', '--config', path]);
    expect(code).toBe(2);
    expect(stdout).toMatch(/source: .*"Orders" does not exist \(.*check schema and upper case/);
    expect(stdout).toMatch(/downstream: .*password authentication failed.*check user and password/);
    expect(stdout).toMatch(/source: .*updatedAt/);
    expect(stdout + stderr).not.toContain(PASSWORD);
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

  it('warns of columns that cannot be compared fairly, and not once their rule says how', async () => {
    await data.pool.query(
      'create table if not exists worded as select order_no, amount::text as amount, updated_at from orders',
    );
    const worded = { ...postgres(data.url), table: 'worded' };
    const pair = pairOf(postgres(data.url), worded).reconciliations.orders;
    const withRule = (rule: unknown) =>
      configFile({ version: 1, reconciliations: { orders: { ...pair, compare: { amount: rule } } } });
    const unfair = await trueup(['check', '--config', await withRule({})]);
    expect(unfair.code).toBe(0);
    expect(unfair.stdout).toMatch(
      /^ {2}warning: amount: the source is numeric\S* and the downstream text; /m,
    );
    const report = ['check', '--config', await withRule('decimal')];
    expect(await trueupJson<Record<string, unknown>>(report)).toMatchObject({ warnings: [] });
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

describe('init', () => {
  it('writes a config that check accepts', async () => {
    const other = await createDatabase();
    stops.push(() => other.drop());
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

  it('says which variable is not set, and asks nobody where nobody can answer', async () => {
    const unset = await trueup(['init', '--source-env', 'NOT_SET_A', '--downstream-env', 'NOT_SET_B'], {
      cwd: dir,
    });
    expect(unset).toMatchObject({ code: 2, stderr: expect.stringContaining('NOT_SET_A is not set') });
    const silent = await trueup(['init'], { cwd: dir });
    expect(silent).toMatchObject({ code: 2, stderr: expect.stringContaining('--source-env') });
  });
});

describe('doctor', () => {
  it('finds what is wrong without a worker, and nothing beside a running one', async () => {
    const store = await createStore();
    stops.push(() => store.drop());
    const api = await startBookings(data.pool, { dedupes: true });
    stops.push(() => api.close());
    const path = await configFile(
      ordersConfig({
        storeUrl: store.url,
        dataUrl: data.url,
        apiUrl: api.url,
        reconciliation: { schedule: '0 4 1 1 *' },
      }),
    );
    interface Finding {
      readonly check: string;
      readonly ok: boolean;
      readonly detail: string;
    }
    const alone = await trueupJson<Finding[]>(['doctor', '--config', path], {}, 4);
    expect(alone.filter((finding) => !finding.ok).map((finding) => finding.check)).toEqual([
      'workers',
      'schedule orders',
    ]);
    const { child } = await up(path);
    stops.push(() => child.stop());
    await child.waitForLine(/"event":"worker.started"/);
    const beside = await trueupJson<Finding[]>(['doctor', '--config', path]);
    expect(beside.filter((finding) => !finding.ok)).toEqual([]);
    expect(beside.map((finding) => finding.check)).toEqual(
      expect.arrayContaining(['store', 'store clock', 'replay', 'queue', 'workers', 'schedule orders']),
    );
  });
});

describe('every command', () => {
  it('shows an example in its help, and refuses what it does not know', async () => {
    const help = await trueup(['--help']);
    expect(help.code).toBe(0);
    const commands = [...help.stdout.matchAll(/^ {2}([a-z]+) /gm)].flatMap(([, name]) => name ?? []);
    expect(commands).toEqual(
      expect.arrayContaining([
        ...['init', 'check', 'up', 'worker', 'migrate', 'apply', 'doctor', 'demo', 'run', 'runs', 'diffs'],
        ...['diff', 'replay', 'resolve', 'fail', 'dismiss', 'hold', 'release', 'watermark'],
      ]),
    );
    for (const command of commands.filter((name) => name !== 'help')) {
      const { code, stdout } = await trueup([command, '--help']);
      expect({ command, code }).toEqual({ command, code: 0 });
      expect(stdout, command).toMatch(/Example:\n {2}.*trueup /);
    }
    const typo = await trueup(['chek']);
    expect(typo).toMatchObject({ code: 2, stderr: expect.stringContaining('check') });
  });
});
