import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createStore, type TestDatabase } from '../support/database.ts';
import { type Said, trueup, up } from '../support/e2e-cli.ts';
import { writeConfig } from '../support/e2e-config.ts';
import { createOrders, type OrdersDatabase } from '../support/e2e-orders.ts';
import { startServer, type TestServer } from '../support/http-server.ts';
import { until } from '../support/wait.ts';

const planted = (what: string) => `planted-${what}-${randomBytes(6).toString('hex')}`;
const SECRETS = {
  TARGET_HEADER: planted('header'),
  TARGET_URL_PASSWORD: planted('userinfo'),
  TARGET_URL_KEY: planted('parameter'),
  SIDE_PASSWORD: planted('side'),
  SIDE_CONDITION: planted('condition'),
  SQL_TARGET_PASSWORD: planted('sql'),
  WEBHOOK_PATH: planted('webhook'),
  WEBHOOK_SIGNATURE: `whsec_${Buffer.from(planted('signature')).toString('base64')}`,
  DINGTALK_TOKEN: planted('token'),
  DINGTALK_SECRET: `SEC${planted('dingtalk')}`,
  STORE_PASSWORD: planted('store'),
};
/** A value that a person declared to be none. */
const SHOP_ID = `shop-${randomBytes(6).toString('hex')}`;

const stops: (() => Promise<void>)[] = [];
const cli: Said[] = [];
let data: OrdersDatabase;
let store: TestDatabase;
let target: TestServer;
let chat: TestServer;
let log = '';
let dump: ReadonlyMap<string, string>;

/** A role that may do everything; it goes last, when the databases it wrote to are gone. */
async function createRole(admin: pg.Pool, password: string): Promise<(address: string) => string> {
  const name = `role_${randomBytes(8).toString('hex')}`;
  await admin.query(`create role ${name} login superuser password '${password}'`);
  stops.push(async () => {
    await admin.query(`drop role ${name}`);
  });
  return (address) => Object.assign(new URL(address), { username: name, password }).href;
}

/** Every table of the store and of the queue in it, as text. */
async function dumpOf(url: string): Promise<Map<string, string>> {
  const pool = new pg.Pool({ connectionString: url });
  try {
    const { rows: tables } = await pool.query<{ name: string }>(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
        where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
    );
    const texts = new Map<string, string>();
    for (const { name } of tables) {
      const { rows } = await pool.query<{ text: string }>(`select whole::text as text from ${name} as whole`);
      texts.set(name, rows.map((row) => row.text).join('\n'));
    }
    return texts;
  } finally {
    await pool.end();
  }
}

beforeAll(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'trueup-e2e-secrets-'));
  stops.push(() => rm(dir, { recursive: true, force: true }));
  const admin = new pg.Pool({ connectionString: inject('postgresUrl') });
  stops.push(() => admin.end());
  const asSide = await createRole(admin, SECRETS.SIDE_PASSWORD);
  const asLedger = await createRole(admin, SECRETS.SQL_TARGET_PASSWORD);
  const asStore = await createRole(admin, SECRETS.STORE_PASSWORD);
  data = await createOrders();
  stops.push(() => data.drop());
  store = await createStore();
  stops.push(() => store.drop());
  await data.place([{ no: 'A-1' }, { no: 'A-2' }]);
  const everything = JSON.stringify(SECRETS);
  // The ledger's database quotes in its error what it should not know.
  await data.pool.query(`create function refuse(no text) returns void language plpgsql as
    $$ begin raise exception 'refused % with %', no, '${everything}' using detail = '${everything}'; end $$`);
  target = await startServer((request, response) => {
    response.statusCode = 422;
    response.setHeader('x-request-id', SECRETS.TARGET_HEADER);
    response.end(JSON.stringify({ url: request.url, headers: request.headers, all: SECRETS }));
  });
  stops.push(() => target.close());
  chat = await startServer((request, response) => {
    response.statusCode = 500;
    response.end(JSON.stringify({ url: request.url, headers: request.headers, all: SECRETS }));
  });
  stops.push(() => chat.close());

  const env = {
    ...SECRETS,
    SIDE_URL: asSide(data.url),
    LEDGER_URL: asLedger(data.url),
    DATABASE_URL: asStore(store.url),
    SHOP_ID,
  };
  const side = (table: string, time: string, more: object = {}) => ({
    type: 'postgres',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the config's own interpolation
    url: '${env:SIDE_URL}',
    table,
    time,
    fields: ['amount'],
    ...more,
  });
  const reconciliation = (more: object) => ({
    mode: 'compensate',
    window: { lookback: '1h', settle: '0s' },
    source: side('orders', 'updated_at'),
    downstream: side('bookings', 'booked_at'),
    key: ['order_no'],
    compare: { amount: 'decimal' },
    recheck: { delay: '200ms' },
    guard: { maxRatio: 1 },
    ...more,
  });
  const authority = `127.0.0.1:${target.port}`;
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: the config's own interpolation
  const config = await writeConfig({
    version: 1,
    http: { port: 0 },
    log: { level: 'trace' },
    targets: {
      echo: {
        url: `http://shop:\${env:TARGET_URL_PASSWORD}@${authority}/base?api_key=\${env:TARGET_URL_KEY}`,
        headers: { 'X-Partner': 'Token ${env:TARGET_HEADER}' },
      },
      ledger: { url: '${env:LEDGER_URL}' },
    },
    reconciliations: {
      called: reconciliation({
        repair: {
          missing: {
            target: 'echo',
            action: {
              type: 'http',
              path: '/orders',
              body: { no: '{key.order_no}', shop: '${plain:SHOP_ID}' },
            },
          },
        },
      }),
      written: reconciliation({
        repair: {
          missing: {
            target: 'ledger',
            action: { type: 'sql', statement: 'select refuse(:no)', bind: { no: '{key.order_no}' } },
          },
        },
      }),
      unread: reconciliation({
        source: side('orders', 'updated_at', { where: "amount <> '${env:SIDE_CONDITION}'" }),
      }),
    },
    alerts: {
      channels: {
        pager: {
          type: 'webhook',
          url: `${chat.url}/hooks/\${env:WEBHOOK_PATH}`,
          secrets: ['${env:WEBHOOK_SIGNATURE}'],
        },
        robot: {
          type: 'dingtalk',
          url: `${chat.url}/robot/send?access_token=\${env:DINGTALK_TOKEN}`,
          secret: '${env:DINGTALK_SECRET}',
        },
      },
      warning: ['pager', 'robot'],
      action: ['robot', 'pager'],
    },
  });
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: the config's own interpolation
  stops.push(() => config.remove());

  const { child } = await up(config.path, { env, cwd: dir });
  stops.push(() => child.stop());
  const say = async (...args: string[]) => {
    const said = await trueup([...args, '--config', config.path], { env, cwd: dir });
    cli.push(said);
    return said;
  };
  await say('check');
  await say('run', 'called', 'written', 'unread', '--last', '1h', '--mode', 'compensate', '--detach');
  const pool = new pg.Pool({ connectionString: store.url });
  stops.push(() => pool.end());
  const patient = { timeoutMs: 90_000 };
  const isSo = async (condition: string) => {
    const { rows } = await pool.query<{ so: boolean }>(`select ${condition} as so`);
    return rows[0]?.so === true;
  };
  await until(
    'both records are refused twice, and a run is incomplete',
    () =>
      isSo(`(select count(*) from trueup.compensation where state = 'escalated') = 4
        and exists (select from trueup.run where result = 'incomplete')`),
    patient,
  );
  await until(
    'both channels were called',
    () => ['/hooks/', '/robot/'].every((path) => chat.requests.some(({ url }) => url.startsWith(path))),
    patient,
  );
  await until(
    'a failed delivery is stored',
    () => isSo('exists (select from trueup.alert_message where attempts > 0)'),
    patient,
  );
  for (const command of [
    ['runs'],
    ['diffs'],
    ['doctor'],
    ['runs', '--format', 'json'],
    ['diffs', '--format', 'json'],
  ])
    await say(...command);
  const { rows: diffs } = await pool.query<{ id: string }>('select id from trueup.diff order by id');
  for (const { id } of diffs) {
    await say('diff', id);
    await say('diff', id, '--format', 'json');
  }
  await say('run', 'unread', '--last', '1h');
  await child.stop();
  log = child.lines.map((line) => line.text).join('\n');
  dump = await dumpOf(store.url);
}, 400_000);

afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Where a text shows outside the process. */
function tracesOf(text: string): string[] {
  const out = cli.map(({ stdout, stderr }) => `${stdout}\n${stderr}`).join('\n');
  return [
    ...(log.includes(text) ? ['log'] : []),
    ...(out.includes(text) ? ['cli'] : []),
    ...[...dump].filter(([, rows]) => rows.includes(text)).map(([table]) => table),
  ];
}

describe('a secret of the configuration', () => {
  it('arrives where it belongs', () => {
    const [call] = target.requests;
    expect(call?.headers['x-partner']).toBe(`Token ${SECRETS.TARGET_HEADER}`);
    expect(call?.url).toBe(`/base/orders?api_key=${SECRETS.TARGET_URL_KEY}`);
    expect(call?.headers.authorization).toBe(
      `Basic ${Buffer.from(`shop:${SECRETS.TARGET_URL_PASSWORD}`).toString('base64')}`,
    );
    expect(chat.requests.some(({ url }) => url.includes(SECRETS.DINGTALK_TOKEN))).toBe(true);
  });

  it.each(Object.entries(SECRETS))(
    '%s is in no table of the store, no log line and no output',
    (_, secret) => {
      expect(tracesOf(secret)).toEqual([]);
      // Basic authorization, and whatever else was encoded on the way.
      for (const prefix of ['', 'shop:'])
        expect(tracesOf(Buffer.from(`${prefix}${secret}`).toString('base64'))).toEqual([]);
    },
  );

  it('leaves readable what is none, so that the search above means something', () => {
    const everywhere = ['log', 'cli', 'trueup.attempt', 'trueup.run'];
    // The errors and answers that quoted the secrets are there, masked.
    expect(tracesOf('[secret]')).toEqual(expect.arrayContaining(everywhere));
    expect(tracesOf('invalid input syntax for type numeric')).toEqual(
      expect.arrayContaining(['log', 'cli', 'trueup.run']),
    );
    expect(tracesOf('refused A-1 with')).toEqual(expect.arrayContaining(['cli', 'trueup.attempt']));
    expect(tracesOf(SHOP_ID)).toEqual(
      expect.arrayContaining(['cli', 'trueup.attempt', 'trueup.compensation']),
    );
    expect(dump.size).toBeGreaterThan(20);
  });
});
