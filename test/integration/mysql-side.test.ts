import { randomInt } from 'node:crypto';
import type { RowDataPacket } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Side, SideError } from '../../src/reconcile/side.ts';
import { createMysql, type TestMysql } from '../support/mysql.ts';
import { NOON } from '../support/records.ts';
import { compareSides, openSide, type SideOptions, scanAll } from '../support/sides.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';

const { signal } = new AbortController();
const opened: Side[] = [];
let database: TestMysql;

beforeAll(async () => {
  database = await createMysql();
  await database.admin.query(
    "create table moving (k varchar(40) primary key, t timestamp(6) not null default '2026-11-30 12:30:00')",
  );
  await database.admin.query("insert into moving (k) select concat('k', seq) from seq_100_to_199");
});
afterAll(async () => {
  for (const side of opened) await side.close();
  await database.drop();
});

function open(options: SideOptions): Side {
  const side = openSide({ type: 'mysql', url: database.url, ...options });
  opened.push(side);
  return side;
}

/** Numbers of the sessions of sides whose running statement contains this. */
async function statements(text: string): Promise<readonly number[]> {
  const [rows] = await database.admin.query<RowDataPacket[]>(
    "select id from information_schema.processlist where info like '/* trueup side %' and locate(?, info) > 0",
    [text],
  );
  return rows.map((row) => Number(row['id']));
}

/** Sessions that are in this database. */
async function sessions(): Promise<readonly number[]> {
  const [rows] = await database.admin.query<RowDataPacket[]>(
    'select id from information_schema.processlist where db = ? and id <> connection_id()',
    [database.name],
  );
  return rows.map((row) => Number(row['id']));
}

describe('reading MySQL', () => {
  it('is one snapshot, whatever is written meanwhile', async () => {
    const pages: number[] = [];
    for await (const page of open({ table: 'moving', pageSize: 30 }).scan(NOON, signal)) {
      pages.push(page.length);
      await database.admin.query("insert into moving (k) values (concat('z', uuid()))");
      await database.admin.query("delete from moving where k = 'k199'");
    }
    expect(pages).toEqual([30, 30, 30, 10]);
    const lookedUp = open({ table: 'moving' });
    expect(await lookedUp.lookup([['k199']], signal)).toEqual([]);
  });

  it('cannot write, even where the user may', async () => {
    await database.admin.query('create table never (n int)');
    await database.admin.query(
      'create function writes() returns int modifies sql data begin insert into never values (1); return 1; end',
    );
    const side = open({ query: "select writes() as k, timestamp'2026-11-30 12:30:00' as t" });
    const error = await scanAll(side).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: 'TRU_SIDE_MISCONFIGURED',
      message: expect.stringMatching(/READ ONLY/i),
    });
    const [rows] = await database.admin.query('select * from never');
    expect(rows).toEqual([]);
  });

  it('takes no more rows than two pages while nobody asks for them', async () => {
    await database.admin.query(
      'create table wide (k int primary key, filler varchar(10000), t timestamp not null)',
    );
    await database.admin.query(
      "insert into wide select seq, repeat('x', 10000), '2026-11-30 12:30' from seq_1_to_4000",
    );
    const { hostname, port } = new URL(database.url);
    const proxy = await startProxy({ host: hostname, port: Number(port || 3306) });
    const side = open({ table: 'wide', fields: ['filler'], pageSize: 50, url: proxy.url(database.url) });
    try {
      const pages = side.scan(NOON, signal)[Symbol.asyncIterator]();
      expect((await pages.next()).value).toHaveLength(50);
      // The server is stuck in the middle of its answer: it has more to send than it can.
      await until('the server waits', async () => {
        const [rows] = await database.admin.query<RowDataPacket[]>(
          "select state from information_schema.processlist where locate('`filler`', info) > 0 and info like '/* trueup%'",
        );
        return ['Writing to net', 'Sending data', 'Sending to client'].includes(String(rows[0]?.['state']));
      });
      const [id] = await statements('`filler`');
      for (let look = 0; look < 20; look += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        expect(await statements('`filler`')).toEqual([id]);
      }
      let rest = 0;
      for (let page = await pages.next(); page.done !== true; page = await pages.next())
        rest += page.value.length;
      expect(rest).toBe(3950);
    } finally {
      await proxy.close();
    }
  });

  it('does not count the time that the other side takes against the limit of a statement', async () => {
    const side = open({ table: 'wide', fields: ['filler'], pageSize: 500, statementTimeout: '300ms' });
    let rows = 0;
    for await (const page of side.scan(NOON, signal)) {
      rows += page.length;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(rows).toBe(4000);
  });

  it('throws when its connections are killed between two pages, and never gives a difference', async () => {
    const source = open({ table: 'wide', rules: { filler: 'text' }, pageSize: 10 });
    const downstream = open({ table: 'wide', rules: { filler: 'text' }, pageSize: 10 });
    const killed: Side = {
      label: downstream.label,
      canScan: true,
      ordered: true,
      clock: (stop) => downstream.clock(stop),
      async *scan(window, stop) {
        for await (const page of downstream.scan(window, stop)) {
          yield page;
          for (const id of await sessions()) await database.admin.query(`kill ${id}`).catch(() => undefined);
          await until('the sessions are gone', async () => (await sessions()).length === 0);
        }
      },
      lookup: (keys, stop) => downstream.lookup(keys, stop),
      describe: (stop) => downstream.describe(stop),
      close: () => downstream.close(),
    };
    await expect(compareSides(source, killed, { filler: 'text' })).rejects.toMatchObject({
      name: 'SideError',
      transient: true,
    });
    expect((await compareSides(source, downstream, { filler: 'text' })).suspects).toEqual([]);
  });

  it('throws when the connection breaks in the middle of a scan, and reads again when it is back', async () => {
    const { hostname, port } = new URL(database.url);
    const proxy = await startProxy({ host: hostname, port: Number(port || 3306) });
    const side = open({ table: 'wide', fields: ['filler'], pageSize: 10, url: proxy.url(database.url) });
    try {
      const pages = side.scan(NOON, signal)[Symbol.asyncIterator]();
      await pages.next();
      await proxy.mode('reset');
      const rest = async () => {
        for (let page = await pages.next(); page.done !== true; page = await pages.next());
      };
      await expect(rest()).rejects.toMatchObject({ code: 'TRU_SIDE_UNREACHABLE', transient: true });
      await proxy.mode('pass');
      expect(await scanAll(side)).toHaveLength(4000);
    } finally {
      await proxy.close();
    }
  });

  /** Works on and on for each record, and does not notice by itself that nobody listens. */
  const busy = (times: number) => `select k, t from moving where benchmark(${times}, md5(k)) = 0`;

  /** Tells the statement of one test from those of others on a shared server. */
  const aLot = () => 10_000_000_000 + randomInt(1_000_000_000);

  it.each([
    ['a lookup', (side: Side) => side.lookup([['k150']], signal)],
    ['a scan', (side: Side) => scanAll(side)],
  ])('gives up %s at its limit, on the server too', async (_, read) => {
    const times = aLot();
    const side = open({ query: busy(times), statementTimeout: '200ms' });
    await expect(read(side)).rejects.toMatchObject({
      transient: true,
      message: expect.stringMatching(/statementTimeout/),
    });
    await until('nothing runs', async () => (await statements(String(times))).length === 0);
  });

  it('stops a running statement when told to, on the server too', async () => {
    const times = aLot();
    const side = open({ query: busy(times) });
    const stop = new AbortController();
    const looking = side.lookup([['k150']], stop.signal);
    looking.catch(() => undefined);
    await until('the statement runs', async () => (await statements(String(times))).length === 1);
    stop.abort(new Error('enough'));
    await expect(looking).rejects.toThrow('enough');
    await until('nothing runs', async () => (await statements(String(times))).length === 0);
  });

  it('waits for a free connection, and stops waiting when told to', async () => {
    const side = open({ table: 'wide', fields: ['filler'], pageSize: 10 });
    const scans = Array.from({ length: 4 }, () => side.scan(NOON, signal)[Symbol.asyncIterator]());
    for (const pages of scans) await pages.next();
    const stop = new AbortController();
    const stopped = side.lookup([['1']], stop.signal);
    const served = side.lookup([['1']], signal);
    stop.abort(new Error('enough'));
    await expect(stopped).rejects.toThrow('enough');
    await scans[0]?.return?.();
    expect(await served).toHaveLength(1);
    for (const pages of scans) await pages.return?.();
    await side.close();
    await until('all connections are closed', async () => (await sessions()).length === 0);
  });

  it.each([
    ['no_such_table', {}, /no_such_table/, 'TRU_SIDE_MISCONFIGURED'],
    ['moving', { rules: { nothing: 'text' } }, /nothing/, 'TRU_SIDE_MISCONFIGURED'],
    ['moving', { time: 'k' }, /varchar/, 'TRU_SIDE_MISCONFIGURED'],
    ['moving', { where: 'k =' }, /syntax/, 'TRU_SIDE_MISCONFIGURED'],
  ])('explains what is wrong with %s %j', async (table, options, words, code) => {
    const error = await scanAll(open({ table, ...options })).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SideError);
    expect(error).toMatchObject({ code, transient: false, message: expect.stringMatching(words) });
  });

  it.each([
    ['a wrong password', (url: URL) => (url.password = 'hunter3'), 'TRU_SIDE_REFUSED'],
    ['a database that is not there', (url: URL) => (url.pathname = '/no_such_database'), 'TRU_SIDE_REFUSED'],
    ['a server without TLS', (url: URL) => url.searchParams.set('ssl-mode', 'REQUIRED'), 'TRU_SIDE_REFUSED'],
    [
      'a certificate that is not there',
      (url: URL) => (url.search = 'ssl-mode=VERIFY_CA&ssl-ca=/no/such/file'),
      'TRU_SIDE_MISCONFIGURED',
    ],
  ])('explains %s and shows no secret', async (_, change, code) => {
    const user = await database.user('select');
    const url = new URL(user.url);
    change(url);
    const error = await scanAll(open({ table: 'moving', url: url.href })).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code, transient: false });
    expect(`${error} ${JSON.stringify(error)}`).not.toMatch(/hunter/);
  });

  it('needs a table or a query, not both, and an address that can be read', () => {
    expect(() => open({})).toThrow(SideError);
    expect(() => open({ table: 'a', query: 'select 1' })).toThrow(/either/);
    expect(() => open({ table: 'a.b.c' })).toThrow(/no table name/);
    for (const url of [
      'mysql://u:hunter2@host/db?typeCast=1',
      'mysql://u:hunter2@[/db',
      'mysql://u:hunter2@h/d?ssl-mode=x',
    ])
      expect(() => open({ table: 'a', url })).toThrow(/^(?!.*hunter2)source mysql: the url/);
  });
});

describe('what check shows of a MySQL side', () => {
  it('names columns, indexes, rights and keys that only this database knows', async () => {
    await database.admin.query(
      'create table described (id bigint auto_increment primary key, k varchar(20) not null unique, n decimal(20, 2), t datetime)',
    );
    await database.admin.query("insert into described (k, n, t) values ('a', 1.50, '2026-11-30 12:30')");
    const good = await open({ table: 'described', rules: { n: {} } }).describe(signal);
    expect(good.columns).toEqual([
      { name: 'k', type: 'text', native: 'varchar(20)' },
      { name: 'n', type: 'decimal', native: 'decimal(20,2)' },
    ]);
    expect(good.samples).toMatchObject([{ key: ['a'], fields: { n: { text: '1.5' } } }]);
    expect(good.notes).toContainEqual(expect.stringContaining('no index starts with t'));
    expect(good.notes).toContainEqual(expect.stringContaining('wall time of UTC'));
    expect(good.notes).not.toContainEqual(expect.stringContaining('no unique index'));
    expect(good.warnings).toContainEqual(expect.stringContaining('may also write'));
    const surrogate = await open({ table: 'described', names: ['id'] }).describe(signal);
    expect(surrogate.warnings).toContainEqual(expect.stringContaining('id is numbered by this database'));
  });

  it('warns of an engine without snapshots', async () => {
    await database.admin.query(
      'create table plain (k int primary key, t timestamp not null) engine = MyISAM',
    );
    expect((await open({ table: 'plain' }).describe(signal)).warnings).toContainEqual(
      expect.stringContaining('kept by MyISAM'),
    );
  });
});
