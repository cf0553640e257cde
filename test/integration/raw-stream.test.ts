import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ruleSchema, sideSchema } from '../../src/config/schema.ts';
import type { Instant } from '../../src/reconcile/instant.ts';
import type { RawFormat } from '../../src/reconcile/raw/frame-buffer.ts';
import { frameLength } from '../../src/reconcile/raw/frame-buffer.ts';
import { type ReadResult, readWindow } from '../../src/reconcile/read-window.ts';
import { keyText, type SideRecord, type Window } from '../../src/reconcile/record.ts';
import { type RawStream, type Side, SideError } from '../../src/reconcile/side.ts';
import { createSide } from '../../src/reconcile/sides/create.ts';
import { CopyOut } from '../../src/reconcile/sides/postgres-copy.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { at, NOON } from '../support/records.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import { startTlsProxy } from '../support/tls-proxy.ts';
import { until } from '../support/wait.ts';

const { signal } = new AbortController();
let database: TestDatabase;
let admin: pg.Client;
const opened: Side[] = [];

beforeAll(async () => {
  database = await createDatabase();
  admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  await admin.query(
    `create table orders (k text collate "C" primary key, n int, note text, t timestamptz default '${at('12:30')}')`,
  );
  await admin.query(
    "insert into orders select 'k' || i + 100000, i, repeat('note ' || i, 50) from generate_series(1, 40000) i",
  );
  // Costs much, so that the server calls it after the sort, when rows are under way already.
  await admin.query(`create function fail_at(n int, bad int) returns int language plpgsql volatile as
    $$ begin if n = bad then raise exception 'row % is bad', n; end if; return n; end $$`);
  await admin.query('analyze');
});
afterEach(async () => {
  for (const side of opened.splice(0)) await side.close();
});
afterAll(async () => {
  await admin.end();
  await database.drop();
});

function open({
  rules = { n: {}, note: {} },
  url = database.url,
  ...config
}: Record<string, unknown> = {}): Side {
  const parsed = Object.fromEntries(
    Object.entries(rules as Record<string, unknown>).map(([name, rule]) => [name, ruleSchema.parse(rule)]),
  );
  const source = config['query'] === undefined ? { table: 'orders' } : {};
  const side = createSide(sideSchema.parse({ type: 'postgres', url, time: 't', ...source, ...config }), {
    name: 'source',
    keyNames: ['k'],
    rules: parsed,
    targets: {},
    readGate: { take: () => Promise.resolve() },
  });
  opened.push(side);
  return side;
}

function read(source: Side, downstream: Side, stop: AbortSignal = signal): Promise<ReadResult> {
  const rules = { n: ruleSchema.parse({}), note: ruleSchema.parse({}) };
  return readWindow({ window: NOON, source, downstream, plan: 'raw', rules, digestKey: 'k', signal: stop });
}

function start(side: Side, format: RawFormat = 'binary', stop: AbortSignal = signal, window: Window = NOON) {
  if (side.raw === undefined) throw new Error('no raw side');
  return side.raw.open(window, format, stop);
}

/** All records of the rest of a stream. */
async function drain(stream: RawStream): Promise<SideRecord[]> {
  const records: SideRecord[] = [];
  for (;;) {
    const { frames } = stream;
    while (frames.start < frames.whole) {
      const next = frames.start + frameLength(frames.bytes, frames.start);
      records.push(stream.read(frames.bytes.subarray(frames.start + 5, next)));
      frames.consumeTo(next);
    }
    if (frames.state !== 'open') return records;
    await stream.more();
  }
}

/** What reading a stream to its end throws. */
async function failureOf(side: Side, format: RawFormat = 'binary', window: Window = NOON): Promise<unknown> {
  const stream = await start(side, format, signal, window);
  try {
    return await drain(stream);
  } catch (error) {
    return error;
  } finally {
    stream.discard();
  }
}

async function running(words: string): Promise<number> {
  const { rows } = await admin.query(
    "select count(*)::int as n from pg_stat_activity where state = 'active' and query like $1 and pid <> pg_backend_pid()",
    [`%${words}%`],
  );
  return rows[0].n;
}

const SLOW = `select 'k' as k, 1 as n, pg_sleep(30)::text as note, timestamptz '${at('12:30')}' as t`;

describe('a raw stream of PostgreSQL', () => {
  it('reads over TLS', async () => {
    const { hostname, port } = new URL(database.url);
    const proxy = await startTlsProxy({ host: hostname, port: Number(port) });
    const side = open({ url: proxy.url(database.url) });
    try {
      const result = await read(side, open());
      expect(result.counts).toMatchObject({ source: 40_000, matched: 40_000 });
      expect(proxy.accepted()).toBeGreaterThan(0);
    } finally {
      await side.close();
      opened.splice(opened.indexOf(side), 1);
      await proxy.close();
    }
  });

  it('leaves its connections ready for the next reading', async () => {
    const [a, b] = [open(), open({ where: "k <> 'k100007'" })];
    const pids = async () =>
      (
        await admin.query(
          'select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() order by pid',
        )
      ).rows.map((row) => row.pid);
    const first = await read(a, b);
    const before = await pids();
    for (let i = 0; i < 3; i += 1) expect((await read(a, b)).counts).toEqual(first.counts);
    expect(await pids()).toEqual(before);
    expect(await a.lookup([['k100007']], signal)).toHaveLength(1);
  });

  it('stops when told to, and the server stops too', async () => {
    const stop = new AbortController();
    const reading = read(open(), open({ query: SLOW }), stop.signal);
    await until('the copy runs', async () => (await running('pg_sleep(30)')) === 1);
    stop.abort(new Error('enough'));
    await expect(reading).rejects.toThrow('enough');
    await until('the server has stopped', async () => (await running('pg_sleep(30)')) === 0);
  });

  it('gives up at the statement timeout when nothing comes, and the server stops too', async () => {
    const slow = open({ query: SLOW, statementTimeout: '300ms' });
    await expect(read(open(), slow)).rejects.toMatchObject({
      code: 'TRU_SIDE_UNREACHABLE',
      transient: true,
      message: expect.stringMatching(/300 ms.*statementTimeout/),
    });
    await until('the server has stopped', async () => (await running('pg_sleep(30)')) === 0);
  });

  it('throws what the server says in the middle, and finds nothing missing', async () => {
    const bad = open({ query: 'select k, fail_at(n, 30000) as n, note, t from orders order by k' });
    const stream = await start(bad);
    await expect(drain(stream)).rejects.toMatchObject({
      message: expect.stringContaining('row 30000 is bad'),
    });
    expect(stream.frames.rows).toBeGreaterThan(1000);
    stream.discard();
    const error = await read(open(), bad).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SideError);
    expect(String(error)).toContain('row 30000 is bad');
    expect(await bad.lookup([['k100007']], signal)).toHaveLength(1);
  });

  it('throws when its session is ended in the middle', async () => {
    const side = open();
    const stream = await start(side);
    await stream.more();
    await admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where query like 'copy (%' and pid <> pg_backend_pid()",
    );
    await expect(drain(stream)).rejects.toMatchObject({ name: 'SideError', transient: true });
    stream.discard();
    expect((await read(side, open())).counts).toMatchObject({ matched: 40_000, missing: 0 });
  });

  it.each(['reset', 'black-hole'] as const)(
    'throws when the connection breaks in the middle: %s',
    async (mode) => {
      const { hostname, port } = new URL(database.url);
      const proxy = await startProxy({ host: hostname, port: Number(port) });
      const side = open({ url: proxy.url(database.url), statementTimeout: '1s' });
      try {
        const stream = await start(side);
        await stream.more();
        await proxy.mode(mode);
        await expect(drain(stream)).rejects.toMatchObject({ code: 'TRU_SIDE_UNREACHABLE', transient: true });
        stream.discard();
        await proxy.mode('pass');
        expect((await read(side, open())).counts).toMatchObject({ matched: 40_000, missing: 0 });
      } finally {
        await side.close();
        opened.splice(opened.indexOf(side), 1);
        await proxy.close();
      }
    },
  );

  it('makes the server wait when the other side is slower, in little memory', async () => {
    const stream = await start(open());
    await until('the server waits for us', async () => {
      const { rows } = await admin.query(
        "select 1 from pg_stat_activity where query like 'copy (%' and wait_event = 'ClientWrite'",
      );
      return rows.length === 1;
    });
    expect(stream.frames.unread).toBeLessThan(512 * 1024);
    expect(stream.frames.bytes.length).toBe(512 * 1024);
    expect(await drain(stream)).toHaveLength(40_000);
    await stream.close();
  });

  it('is one snapshot, whatever is written meanwhile', async () => {
    const stream = await start(open());
    await admin.query("insert into orders (k, n) values ('zzz', 1)");
    const records = await drain(stream);
    await stream.close();
    await admin.query("delete from orders where k = 'zzz'");
    expect(records.at(-1)?.key).toEqual(['k140000']);
  });

  it('uses the order of the column where that is the order of bytes, and asks for it elsewhere', async () => {
    const statement = async (side: Side) => {
      const stream = await start(side);
      const { rows } = await admin.query(
        "select query from pg_stat_activity where query like 'copy (%' order by query_start desc limit 1",
      );
      stream.discard();
      await until('it has ended', async () => (await running('copy (')) === 0);
      return rows[0]?.query as string;
    };
    expect(await statement(open())).toMatch(/order by "k"\n\)/);
    const byLanguage = 'select k collate "en-x-icu" as k, n, note, t from orders';
    expect(await statement(open({ query: byLanguage }))).toContain('order by "k" collate "C"');
  });
});

describe('the statement of a raw stream', () => {
  it('takes hostile windows for values', async () => {
    await admin.query('create table victim (i int)');
    for (const hostile of [
      "'; drop table victim; --",
      "\\'; drop table victim; --",
      "') to stdout; drop table victim; --",
    ]) {
      const window = { from: hostile as Instant, to: hostile as Instant };
      expect(await failureOf(open(), 'text', window)).toBeInstanceOf(SideError);
    }
    expect((await admin.query("select to_regclass('victim') as table")).rows[0].table).toBe('victim');
  });

  it('is one statement, whatever the config’s own SQL holds', async () => {
    await admin.query('create table bystander (i int)');
    const copy = new CopyOut({
      text: 'copy (select 1) to stdout (format text); drop table bystander',
      format: 'text',
      silence: 10_000,
      limit: 10_000,
    });
    admin.query(copy);
    await expect(copy.end()).rejects.toThrow(/multiple commands/);
    expect((await admin.query("select to_regclass('bystander') as table")).rows[0].table).toBe('bystander');
  });

  it('copes with names and conditions that hold quotes, dollars, backslashes and comments', async () => {
    await admin.query(`create table "odd $1 ""names""" ("k'$2" text, "t $1" timestamptz)`);
    await admin.query(`insert into "odd $1 ""names""" values (E'it''s \\\\ $1', '${at('12:30')}')`);
    const side = open({
      table: '"odd $1 ""names"""',
      key: { k: "k'$2" },
      time: 't $1',
      where: `"k'$2" = E'it''s \\\\ $1' -- the one`,
      rules: {},
    });
    for (const format of ['binary', 'text'] as const) {
      const stream = await start(side, format);
      expect((await drain(stream)).map((record) => record.key)).toEqual([["it's \\ $1"]]);
      await stream.close();
    }
  });
});

describe('the rows of a raw stream', () => {
  const VALUES: Readonly<Record<string, readonly string[]>> = {
    boolean: ['true', 'false'],
    smallint: ['-32768', '0', '32767'],
    integer: ['-2147483648', '-1', '2147483647'],
    bigint: ['-9223372036854775808', '9007199254740993'],
    numeric: [
      '0',
      '-0.5',
      '10000',
      '0.0001',
      '1e-20',
      '12345678901234567890.1230',
      '99999999',
      'NaN',
      'Infinity',
      '-Infinity',
      '1e50',
      '0.00',
      '-10000.00001',
    ],
    real: ['0.1', '-0', '16777216', '3.4e38', '1e-40', '1e10', '123456.7', 'NaN', '-Infinity'],
    'double precision': [
      '0.1',
      '1e300',
      '5e-324',
      '1e21',
      '1e-7',
      '-0',
      '123456789.123456789',
      'NaN',
      'Infinity',
    ],
    text: ['', 'a\tb\nc\\d\re\bf\fg\vh', '\\N', 'é😀\uff61', ' blank '],
    'character varying(20)': ['x', '\\.'],
    'character(5)': ['a', 'a b'],
    bytea: ['\\x', '\\x00ff0a09'],
    uuid: ['b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    date: [
      '2000-01-01',
      '1999-12-31',
      '0001-01-01',
      '0044-03-15 BC',
      '9999-12-31',
      '12345-06-07',
      'infinity',
      '-infinity',
      '2024-02-29',
    ],
    timestamp: [
      '2000-01-01 00:00',
      '1999-12-31 23:59:59.999999',
      '0044-03-15 01:02:03.4 BC',
      '294276-12-31',
      'infinity',
      '-infinity',
    ],
    timestamptz: [
      '2026-11-30 12:00:00.000001+01',
      '1883-11-18 12:03:57+00',
      '4713-01-01 BC',
      'infinity',
      '-infinity',
    ],
    json: ['{"a": 1.50, "a": 2}', '[1,\n2]'],
    jsonb: ['{"b": 1e3, "a": null}', '"x"'],
  };

  it('are the records that a scan gives, in both formats', async () => {
    const types = Object.entries(VALUES);
    const columns = types.map(([type], i) => `c${i} ${type}`).join(', ');
    await admin.query(
      `create table typed (k int primary key, ${columns}, t timestamptz default '${at('12:30')}')`,
    );
    const most = Math.max(...types.map(([, values]) => values.length));
    for (let row = 0; row <= most; row += 1) {
      const values = types.map(([, list]) => (row < most ? (list[row % list.length] ?? null) : null));
      const places = values.map((_, i) => `$${i + 2}`).join(', ');
      await admin.query(`insert into typed values ($1, ${places})`, [row, ...values]);
    }
    const rules = Object.fromEntries(types.map((_, i) => [`c${i}`, {}]));
    const side = open({ table: 'typed', fields: ['t', ...Object.keys(rules)], rules: { ...rules, t: {} } });
    const scanned: SideRecord[] = [];
    for await (const page of side.scan(NOON, signal)) scanned.push(...page);
    for (const format of ['binary', 'text'] as const) {
      const stream = await start(side, format);
      expect(stream.whole).toBe(true);
      const records = await drain(stream);
      await stream.close();
      const byKey = (a: SideRecord, b: SideRecord) => (keyText(a.key) < keyText(b.key) ? -1 : 1);
      expect(records.sort(byKey)).toEqual([...scanned].sort(byKey));
      expect(records).toHaveLength(most + 1);
    }
  });
});
