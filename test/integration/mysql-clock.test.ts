import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { millisOf } from '../../src/reconcile/instant.ts';
import type { Side } from '../../src/reconcile/side.ts';
import { createMysql, type TestMysql } from '../support/mysql.ts';
import { type MysqlServer, startMysql } from '../support/mysql-server.ts';
import { at, NOON } from '../support/records.ts';
import { openSide, type SideOptions, scanAll } from '../support/sides.ts';
import { until } from '../support/wait.ts';

/** These tests look at all transactions of a server, or change it for everybody: it is one of their own. */

const { signal } = new AbortController();
const opened: Side[] = [];
let dir: string;
let server: MysqlServer;
let own: TestMysql;
let writer: Connection;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'trueup-mysql-'));
  server = await startMysql(dir, { timeZone: 'America/New_York', args: ['--server-id=2'] });
  own = await createMysql(server.url);
  await own.admin.query('create table stamped (k varchar(200), t timestamp(6) null)');
  writer = await createConnection(own.url);
});
afterAll(async () => {
  for (const side of opened) await side.close();
  await writer?.end();
  await own?.drop();
  await server?.stop();
  await rm(dir, { recursive: true, force: true });
});

function open(options: SideOptions = {}): Side {
  const side = openSide({ type: 'mysql', url: own.url, table: 'stamped', ...options });
  opened.push(side);
  return side;
}

/** The start of what is open, once something is. */
const isOpen = async (side: Side) => {
  const clock = await until('the transaction is seen', async () => {
    const read = await side.clock(signal);
    return read.oldestOpen === null ? undefined : { started: read.oldestOpen };
  });
  if (clock === undefined) throw new Error('until gives only what is there');
  return clock.started;
};
const nothingOpen = (side: Side) =>
  until('nothing is open', async () => (await side.clock(signal)).oldestOpen === null);

describe('the clock of a MySQL side', () => {
  it('is in UTC wherever the machine stands, and shows the oldest transaction that may still write', async () => {
    const side = open();
    await nothingOpen(side);
    const before = Date.now();
    await writer.query('begin');
    await writer.query("insert into stamped values ('open', now(6))");
    const started = await isOpen(side);
    // Whole seconds, cut.
    expect(millisOf(started)).toBeGreaterThan(before - 1100);
    expect(millisOf(started)).toBeLessThanOrEqual(Date.now());
    const { now, seesTransactions } = await side.clock(signal);
    expect(seesTransactions).toBe(true);
    expect(Math.abs(millisOf(now) - Date.now())).toBeLessThan(10_000);
    await writer.query('rollback');
    await nothingOpen(side);
  });

  it('does not wait for the reads of sides', async () => {
    await own.admin.query(
      "insert into stamped select concat('r', seq), '2026-11-30 12:30' from seq_1_to_30000",
    );
    const side = open({ pageSize: 10 });
    const reading = side.scan(NOON, signal)[Symbol.asyncIterator]();
    expect((await reading.next()).value).toHaveLength(10);
    await nothingOpen(side);
    await reading.return?.();
    await own.admin.query('truncate stamped');
  });

  it('shows a statement that waits for a lock before its transaction has begun', async () => {
    const side = open();
    await own.admin.query('lock tables stamped write');
    const waiting = writer.query("insert into stamped values ('late', now(6))");
    try {
      await isOpen(side);
    } finally {
      await own.admin.query('unlock tables');
      await waiting;
    }
    await nothingOpen(side);
  });

  it('would rather fail than believe a list that the server does not renew', async () => {
    const side = open();
    const reader = await createConnection(own.url);
    let reading = true;
    const list = 'select count(*) from information_schema.innodb_trx';
    await reader.query(list);
    const keepOld = async () => {
      while (reading) await reader.query(list);
    };
    const done = keepOld();
    try {
      await writer.query('begin');
      await writer.query("insert into stamped values ('unseen', now(6))");
      await expect(side.clock(signal)).rejects.toMatchObject({
        transient: true,
        message: expect.stringContaining('never renews'),
      });
    } finally {
      reading = false;
      await done;
      await reader.end();
    }
    expect(await isOpen(side)).toBeDefined();
    await writer.query('rollback');
  });

  it('sees a prepared transaction whose session is gone', async () => {
    const gone = await createConnection(own.url);
    for (const statement of ["xa start 'left'", "insert into stamped values ('left', now(6))"])
      await gone.query(statement);
    for (const statement of ["xa end 'left'", "xa prepare 'left'"]) await gone.query(statement);
    await gone.end();
    await isOpen(open());
    await own.admin.query("xa rollback 'left'");
    await nothingOpen(open());
  });

  it('says when transactions cannot be seen, and what to grant', async () => {
    const blind = await own.user('select');
    const side = open({ url: blind.url });
    expect(await side.clock(signal)).toMatchObject({ oldestOpen: null, seesTransactions: false });
    expect((await side.describe(signal)).warnings).toContainEqual(expect.stringContaining('grant PROCESS'));
    const seeing = await own.user('select', 'process');
    const allowed = open({ url: seeing.url });
    expect((await allowed.clock(signal)).seesTransactions).toBe(true);
    expect((await allowed.describe(signal)).warnings).toEqual([]);
  });
});

describe('the clock of a replica', () => {
  it('is not to be believed where a read-only server hides whether it is one', async () => {
    const user = await own.user('select', 'process');
    await own.admin.query('set global read_only = 1');
    try {
      const side = open({ url: user.url });
      expect(await side.clock(signal)).toMatchObject({ seesTransactions: false });
      expect((await side.describe(signal)).warnings).toContainEqual(
        expect.stringContaining('REPLICA MONITOR'),
      );
    } finally {
      await own.admin.query('set global read_only = 0');
    }
  });

  it('that does not follow its primary is an error, not an old truth (C17)', async () => {
    await own.admin.query("change master to master_host = '127.0.0.1', master_port = 1, master_user = 'x'");
    try {
      await expect(open().clock(signal)).rejects.toMatchObject({
        code: 'TRU_SIDE_UNREACHABLE',
        transient: true,
        message: expect.stringContaining('does not follow'),
      });
      expect((await open().describe(signal)).warnings).toContainEqual(
        expect.stringContaining('this is a replica'),
      );
    } finally {
      await own.admin.query('reset slave all');
    }
    expect((await open().clock(signal)).seesTransactions).toBe(true);
  });
});

describe('a server whose defaults are all different', () => {
  const DEFAULTS = [
    "sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,PIPES_AS_CONCAT'",
    "time_zone = '+09:00'",
    'sql_select_limit = 3',
    'max_sort_length = 64',
    'character_set_client = latin1',
    'character_set_results = latin1',
    'character_set_connection = latin1',
    "init_connect = 'set names latin1'",
    'max_statement_time = 1',
    "tx_isolation = 'READ-UNCOMMITTED'",
    'sql_auto_is_null = 1',
  ];

  it('reads the same records (T1, S9)', async () => {
    const user = await own.user('select');
    await own.admin.query('create table set_up (k varchar(200), c char(9), t timestamp(6) null)');
    const long = 'x'.repeat(100);
    for (const end of ['d', 'b', 'ü😀', 'a', 'c'])
      await own.admin.query("insert into set_up values (?, 'é😀', '2026-11-30 12:30:00')", [`${long}${end}`]);
    const [[before] = []] = await own.admin.query<RowDataPacket[]>(
      `select ${DEFAULTS.map((each) => `@@global.${each.split(' = ')[0]}`).join(', ')}`,
    );
    try {
      for (const each of DEFAULTS) await own.admin.query(`set global ${each}`);
      const side = open({ table: 'set_up', url: user.url, rules: { c: 'text' } });
      const records = await scanAll(side);
      expect(records.map(({ key }) => key[0]?.slice(100))).toEqual(['a', 'b', 'c', 'd', 'ü😀']);
      for (const { fields, time } of records) {
        expect(fields['c']).toEqual({ type: 'text', text: 'é😀' });
        expect(time).toBe(at('12:30'));
      }
      expect(
        await side.lookup(
          records.map(({ key }) => key),
          signal,
        ),
      ).toHaveLength(5);
      const settings = open({
        table: undefined,
        query: "select @@tx_isolation as k, timestamp'2026-11-30 12:30:00' as t",
      });
      expect((await scanAll(settings)).map(({ key }) => key)).toEqual([['REPEATABLE-READ']]);
    } finally {
      for (const [name, value] of Object.entries(before ?? {}))
        await own.admin.query(`set ${name.replace('@@global.', 'global ')} = ?`, [
          /^\d+(\.\d+)?$/.test(String(value)) ? Number(value) : value,
        ]);
    }
  });
});
