import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { configSchema, sideSchema } from '../../src/config/schema.ts';
import { createSide } from '../../src/reconcile/sides/create.ts';
import { createDatabase } from '../support/database.ts';
import { createMysql } from '../support/mysql.ts';
import { startOrdersApi } from '../support/orders-api.ts';
import { sparePort } from '../support/spare-port.ts';
import { describeSide, SIDE_CONTEXT, type SideFixture } from './describe-side.ts';

const readGate = { take: () => Promise.resolve() };

async function makePostgres(): Promise<SideFixture> {
  const database = await createDatabase();
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  const table = `orders_${randomBytes(4).toString('hex')}`;
  await admin.query(
    `create table ${table} (order_no text, state text, amount numeric(20, 2), paid_at timestamptz)`,
  );
  // A user as the README asks for: it may read this table and nothing else.
  const reader = `reader_${randomBytes(4).toString('hex')}`;
  await admin.query(`create role ${reader} login password 'hunter2'`);
  await admin.query(`grant select on ${table} to ${reader}`);
  const open = (url: string) => {
    const address = new URL(url);
    address.username = reader;
    address.password = 'hunter2';
    const config = {
      type: 'postgres',
      url: address.href,
      table: `public.${table}`,
      time: 'paid_at',
      pageSize: 10,
    };
    return createSide(sideSchema.parse(config), { ...SIDE_CONTEXT, targets: {}, readGate });
  };
  return {
    open: () => open(database.url),
    openUnreachable: () => open('postgres://postgres@127.0.0.1:1/postgres'),
    async store(orders) {
      await admin.query(`truncate ${table}`);
      for (const order of orders) {
        const values = [order.order_no, order.state, order.amount, order.paid_at];
        await admin.query(`insert into ${table} values ($1, $2, $3, $4)`, values);
      }
    },
    async close() {
      await admin.query(`drop owned by ${reader}`);
      await admin.query(`drop role ${reader}`);
      await admin.end();
      await database.drop();
    },
  };
}

/** `collation` of the key: some sort by bytes and can use an index, most do not. */
function makeMysql(collation: string) {
  return async (): Promise<SideFixture> => {
    const database = await createMysql();
    const { admin } = database;
    await admin.query(
      `create table orders (order_no varchar(64) collate ${collation}, state varchar(20), amount decimal(20, 2),
         paid_at timestamp(6) null, key (order_no), key (paid_at))`,
    );
    // A user as the README asks for: it may read and nothing else.
    const reader = await database.user('select');
    const nobody = await sparePort();
    const open = (url: string) => {
      const config = { type: 'mysql', url, table: 'orders', time: 'paid_at', pageSize: 10 };
      return createSide(sideSchema.parse(config), { ...SIDE_CONTEXT, targets: {}, readGate });
    };
    return {
      open: () => open(reader.url),
      openUnreachable: () => open(`mysql://root:hunter2@127.0.0.1:${nobody}/test`),
      async store(orders) {
        await admin.query('truncate orders');
        for (const order of orders) {
          const paidAt = order.paid_at.replace('T', ' ').replace('Z', '');
          const values = [order.order_no, order.state, order.amount, paidAt];
          await admin.query('insert into orders values (?, ?, ?, ?)', values);
        }
      },
      close: () => database.drop(),
    };
  };
}

/** HTTP sides differ in how they look up and how they page. */
function makeHttp(lookup: object, paging: { query: object; next?: string; firstPage?: number }) {
  return async (): Promise<SideFixture> => {
    const api = await startOrdersApi();
    const config = sideSchema.parse({
      type: 'http',
      target: 'gateway',
      lookup: { ...lookup, items: '/data' },
      list: {
        path: '/orders',
        items: '/data',
        ...paging,
        query: { from: '{from}', to: '{to}', ...paging.query },
      },
      key: { order_no: '/order_no' },
      time: '/paid_at',
      fields: { state: '/state', amount: '/amount' },
    });
    const open = (url: string) => {
      const { targets } = configSchema.parse({
        version: 1,
        reconciliations: {},
        targets: { gateway: { url: `${url}/api`, headers: { authorization: 'Bearer hunter2' } } },
      });
      return createSide(config, { ...SIDE_CONTEXT, targets, readGate });
    };
    const nobody = await sparePort();
    return {
      open: () => open(api.server.url),
      openUnreachable: () => open(`http://127.0.0.1:${nobody}`),
      async store(orders) {
        api.orders = orders;
      },
      close: () => api.close(),
    };
  };
}

describeSide('postgres', makePostgres);
describeSide('mysql, keys that ignore case and blanks', makeMysql('utf8mb4_general_ci'));
describeSide('mysql, keys that sort by bytes', makeMysql('utf8mb4_nopad_bin'));
describeSide(
  'http, one key per call and numbered pages',
  makeHttp({ path: '/orders/{key}' }, { query: { page: '{page}' }, firstPage: 1 }),
);
describeSide(
  'http, batches and cursors',
  makeHttp(
    { method: 'POST', path: '/orders/search', body: { nos: '{keys}' }, batch: 4 },
    { query: { cursor: '{cursor}' }, next: '/next' },
  ),
);
