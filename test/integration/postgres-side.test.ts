import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ruleSchema, sideSchema } from '../../src/config/schema.ts';
import { millisOf } from '../../src/reconcile/instant.ts';
import { readWindow } from '../../src/reconcile/read-window.ts';
import type { Key, SideRecord, Window } from '../../src/reconcile/record.ts';
import { type Side, SideError } from '../../src/reconcile/side.ts';
import { createSide } from '../../src/reconcile/sides/create.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { at, NOON } from '../support/records.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';

const { signal } = new AbortController();
let database: TestDatabase;
let admin: pg.Client;
const opened: Side[] = [];

beforeAll(async () => {
  database = await createDatabase();
  admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
});
afterAll(async () => {
  for (const side of opened) await side.close();
  await admin.end();
  await database.drop();
});

interface SideOptions {
  /** Names of the key's parts. */
  readonly names?: readonly string[];
  readonly rules?: Record<string, unknown>;
  readonly url?: string;
  readonly [option: string]: unknown;
}

function open({ names = ['k'], rules = {}, url = database.url, ...config }: SideOptions): Side {
  const parsed = Object.fromEntries(
    Object.entries(rules).map(([name, rule]) => [name, ruleSchema.parse(rule)]),
  );
  const side = createSide(sideSchema.parse({ type: 'postgres', url, time: 't', ...config }), {
    name: 'source',
    keyNames: names,
    rules: parsed,
    targets: {},
    readGate: { take: () => Promise.resolve() },
  });
  opened.push(side);
  return side;
}

async function scan(side: Side, window: Window = NOON): Promise<SideRecord[]> {
  const records: SideRecord[] = [];
  for await (const page of side.scan(window, signal)) records.push(...page);
  return records;
}

const compareRead = (source: Side, downstream: Side, rules: Record<string, unknown> = {}) =>
  readWindow({
    window: NOON,
    source,
    downstream,
    plan: 'merge',
    rules: Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, ruleSchema.parse(rule)])),
    digestKey: 'k',
    signal,
  });

describe('keys of a PostgreSQL side', () => {
  /** Scans in the order of the canonical bytes, and finds each key again by its canonical text. */
  async function expectKeys(side: Side, sorted: readonly Key[]): Promise<void> {
    expect((await scan(side)).map((record) => record.key)).toEqual(sorted);
    const found = await side.lookup(sorted, signal);
    expect(found.map((record) => record.key).sort()).toEqual([...sorted].sort());
  }

  it('sort by bytes where the column sorts by a language', async () => {
    await admin.query(
      `create table by_language (k text collate "en-x-icu" primary key, t timestamptz default '${at('12:30')}')`,
    );
    await admin.query(
      "insert into by_language (k) values ('a-b'), ('ab'), ('a_b'), ('B'), ('a'), ('\uff61'), ('😀'), ('é')",
    );
    const inLanguage = await admin.query('select k from by_language order by k');
    const sorted = [['B'], ['a'], ['a-b'], ['a_b'], ['ab'], ['é'], ['\uff61'], ['😀']];
    expect(inLanguage.rows.map((row) => [row.k])).not.toEqual(sorted);
    await expectKeys(open({ table: 'by_language' }), sorted);
  });

  it('are apart where a collation calls them equal', async () => {
    await admin.query(
      `create collation loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`,
    );
    await admin.query(
      `create table loose_keys (k text collate loose, t timestamptz default '${at('12:30')}')`,
    );
    await admin.query("insert into loose_keys (k) values ('ABC')");
    const side = open({ table: 'loose_keys' });
    expect(await side.lookup([['abc']], signal)).toEqual([]);
    expect(await side.lookup([['ABC']], signal)).toHaveLength(1);
  });

  it('may be integers beyond 2^53, negative ones too', async () => {
    await admin.query(
      `create table by_integer (k bigint primary key, t timestamptz default '${at('12:30')}')`,
    );
    await admin.query(
      'insert into by_integer (k) values (9), (10), (9007199254740993), (-185395119379775634)',
    );
    await expectKeys(open({ table: 'by_integer' }), [
      ['-185395119379775634'],
      ['10'],
      ['9'],
      ['9007199254740993'],
    ]);
  });

  it('may be numbers whose scale is not part of the key', async () => {
    await admin.query(`create table by_number (k numeric, t timestamptz default '${at('12:30')}')`);
    await admin.query("insert into by_number (k) values ('1.10'), ('100'), ('-3.000'), ('9')");
    await expectKeys(open({ table: 'by_number' }), [['-3'], ['1.1'], ['100'], ['9']]);
  });

  it('may be uuids, times, dates, booleans, bytes, enums and padded characters', async () => {
    await admin.query("create type size as enum ('small', 'large')");
    const columns = [
      ['uuid', ["'B0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"], 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
      ['timestamptz', ["'2026-01-01 01:00:00.123456+01'"], '2026-01-01T00:00:00.123456Z'],
      ['timestamp', ["'2026-01-01 01:00:00.5'"], '2026-01-01T01:00:00.500000Z'],
      ['date', ["'2026-01-31'"], '2026-01-31'],
      ['boolean', ['true'], 'true'],
      ['bytea', ["'\\x00FF'"], '00ff'],
      ['size', ["'large'"], 'large'],
      ['char(6)', ["'AB'"], 'AB'],
    ] as const;
    for (const [i, [type, [literal], canonical]] of columns.entries()) {
      await admin.query(`create table by_type_${i} (k ${type}, t timestamptz default '${at('12:30')}')`);
      await admin.query(`insert into by_type_${i} (k) values (${literal})`);
      await expectKeys(open({ table: `by_type_${i}` }), [[canonical]]);
    }
  });

  it('that no value of the column can have are simply not there', async () => {
    const integers = open({ table: 'by_integer' });
    expect(await integers.lookup([['x'], ['1.5'], ['99999999999999999999'], ['9']], signal)).toHaveLength(1);
    expect(await open({ table: 'by_language' }).lookup([['a\0b'], ['a']], signal)).toHaveLength(1);
  });

  it('may have several parts, in columns with upper case, reserved and quoted names', async () => {
    await admin.query('create schema "Shop"');
    await admin.query(
      `create table "Shop"."Order ""Tasks""" ("select" int, "OrderId" text, "when" timestamptz, "Amount" numeric)`,
    );
    await admin.query(`insert into "Shop"."Order ""Tasks""" values
      (10, 'b', '${at('12:30')}', 1), (9, 'a', '${at('12:30')}', 2), (10, 'a', '${at('12:30')}', 3)`);
    const side = open({
      table: 'Shop."Order ""Tasks"""',
      names: ['shop', 'order'],
      key: { shop: 'select', order: 'OrderId' },
      time: 'when',
      fields: { amount: 'Amount' },
      rules: { amount: 'decimal' },
    });
    await expectKeys(side, [
      ['10', 'a'],
      ['10', 'b'],
      ['9', 'a'],
    ]);
    expect(
      await side.lookup(
        [
          ['10', 'c'],
          ['9', 'b'],
          ['x', 'a'],
        ],
        signal,
      ),
    ).toEqual([]);
  });

  it('with a null make their records undecided, and the rest is compared', async () => {
    await admin.query(`create table with_null (k text, n int, t timestamptz default '${at('12:30')}')`);
    await admin.query("insert into with_null (k, n) values (null, 1), ('a', 1), (null, 2), ('b', 1)");
    const side = () => open({ table: 'with_null', rules: { n: 'integer' } });
    const result = await compareRead(side(), side(), { n: 'integer' });
    expect(result.counts).toMatchObject({ source: 4, matched: 2, undecided: 4 });
    expect((await side().describe(signal)).warnings).toContainEqual(
      expect.stringContaining('2 records have a null in their key'),
    );
  });

  it('that are not unique make duplicates with counts, and check says so', async () => {
    await admin.query(`create table twice (k text, t timestamptz default '${at('12:30')}')`);
    await admin.query("insert into twice (k) values ('6'), ('6'), ('7')");
    const once = open({ query: "select '6'::text as k, t from twice limit 1" });
    const result = await compareRead(open({ table: 'twice', where: "k <> '7'" }), once);
    expect(result.suspects).toMatchObject([{ kind: 'duplicate', sourceCount: 2, downstreamCount: 1 }]);
    expect((await open({ table: 'twice' }).describe(signal)).warnings).toContainEqual(
      '1 keys belong to more than one record',
    );
  });

  it('are refused where a lookup by their text would miss records', async () => {
    await admin.query('create table bad_keys (f float8, j jsonb, s text, t timestamptz)');
    const refusal = { code: 'TRU_SIDE_MISCONFIGURED', transient: false };
    await expect(scan(open({ table: 'bad_keys', names: ['f'] }))).rejects.toMatchObject(refusal);
    await expect(scan(open({ table: 'bad_keys', names: ['j'] }))).rejects.toMatchObject(refusal);
    const numbered = open({ table: 'bad_keys', names: ['s'], rules: { s: 'integer' } });
    await expect(numbered.lookup([['7']], signal)).rejects.toMatchObject(refusal);
    const folded = open({ table: 'bad_keys', names: ['t'], rules: { t: { ignoreCase: true } } });
    await expect(folded.lookup([['7']], signal)).rejects.toMatchObject(refusal);
  });
});

describe('values of a PostgreSQL side', () => {
  it('are exact beyond what JavaScript numbers and dates hold', async () => {
    await admin.query(
      'create table exact (k text, n numeric(20, 2), b bigint, t timestamptz, f real, j jsonb)',
    );
    await admin.query(`insert into exact values
      ('a', 90071992547409930.01, 9007199254740993, '${at('12:00:00.242999')}', 0.1, '{"b": 1.50, "a": 12345678901234567890}')`);
    const rules = { n: 'decimal', b: {}, f: {}, j: {} };
    const [record] = await scan(open({ table: 'exact', rules }));
    expect(record).toEqual({
      key: ['a'],
      time: at('12:00:00.242999'),
      fields: {
        n: { type: 'decimal', text: '90071992547409930.01' },
        b: { type: 'integer', text: '9007199254740993' },
        f: { type: 'float', text: '0.1', single: true },
        j: { type: 'json', text: '{"a":12345678901234567890,"b":1.5}' },
      },
    });
  });

  it('find a difference of one cent and one microsecond', async () => {
    const shifted = `select k, n + 0.01 as n, m + interval '1 microsecond' as m, t from (select *, t as m from exact) as e`;
    const rules = { n: 'decimal', m: 'instant' };
    const result = await compareRead(
      open({ query: 'select k, n, t as m, t from exact', rules }),
      open({ query: shifted, rules }),
      rules,
    );
    expect(result.suspects[0]?.fields.map(({ field }) => field)).toEqual(['n', 'm']);
  });

  it('keep wall times in their zone, and list the hour that happens twice', async () => {
    await admin.query('create table wall (k text, t timestamp)');
    await admin.query(`insert into wall values
      ('before', '2024-11-03 00:59'), ('twice', '2024-11-03 01:30'), ('after', '2024-11-03 02:00'), ('late', '2024-11-03 03:00')`);
    const side = open({
      table: 'wall',
      fields: ['t'],
      rules: { t: { type: 'instant', zone: 'America/New_York' } },
    });
    const window = { from: '2024-11-03T05:00:00.000000Z', to: '2024-11-03T07:30:00.000000Z' } as Window;
    const records = await scan(side, window);
    expect(records.map(({ key, time }) => [key[0], time])).toEqual([
      ['after', '2024-11-03T07:00:00.000000Z'],
      ['twice', null],
    ]);
  });
});

describe('reading PostgreSQL', () => {
  it('is one snapshot, whatever is written meanwhile', async () => {
    await admin.query(`create table moving (k text primary key, t timestamptz default '${at('12:30')}')`);
    await admin.query("insert into moving (k) select 'k' || i from generate_series(100, 199) i");
    const pages: number[] = [];
    for await (const page of open({ table: 'moving', pageSize: 30 }).scan(NOON, signal)) {
      pages.push(page.length);
      await admin.query("insert into moving (k) values ('z' || clock_timestamp()::text)");
      await admin.query("delete from moving where k = 'k199'");
    }
    expect(pages).toEqual([30, 30, 30, 10]);
  });

  it('cannot write, even where the user may', async () => {
    const side = open({
      query: `select setval('never'::text::regclass, 1)::text as k, timestamptz '${at('12:30')}' as t`,
    });
    await admin.query('create sequence never');
    await expect(scan(side)).rejects.toThrow(/read-only/);
  });

  it('throws when its connections are killed between two pages, and never gives a difference', async () => {
    const source = open({ table: 'moving', pageSize: 10 });
    const downstream = open({ table: 'moving', pageSize: 10 });
    const killed: Side = {
      label: downstream.label,
      canScan: true,
      ordered: true,
      clock: (stop) => downstream.clock(stop),
      async *scan(window, stop) {
        for await (const page of downstream.scan(window, stop)) {
          yield page;
          await admin.query(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'trueup side'",
          );
          await until('the sessions are gone', async () => (await sideSessions()) === 0);
        }
      },
      lookup: (keys, stop) => downstream.lookup(keys, stop),
      describe: (stop) => downstream.describe(stop),
      close: () => downstream.close(),
    };
    await expect(compareRead(source, killed)).rejects.toMatchObject({ name: 'SideError', transient: true });
    expect((await compareRead(source, downstream)).suspects).toEqual([]);
  });

  it('throws when the connection breaks in the middle of a scan', async () => {
    const { hostname, port } = new URL(database.url);
    const proxy = await startProxy({ host: hostname, port: Number(port) });
    const side = open({ table: 'moving', pageSize: 10, url: proxy.url(database.url) });
    try {
      const pages = side.scan(NOON, signal)[Symbol.asyncIterator]();
      await pages.next();
      await proxy.mode('reset');
      const rest = async () => {
        for (let page = await pages.next(); page.done !== true; page = await pages.next());
      };
      await expect(rest()).rejects.toMatchObject({ code: 'TRU_SIDE_UNREACHABLE', transient: true });
      await proxy.mode('pass');
      expect((await scan(side)).length).toBeGreaterThanOrEqual(100);
    } finally {
      await proxy.close();
    }
  });

  it('gives up a statement at its timeout', async () => {
    const side = open({
      query: `select pg_sleep(5)::text as k, timestamptz '${at('12:30')}' as t`,
      statementTimeout: '50ms',
    });
    await expect(scan(side)).rejects.toMatchObject({
      transient: true,
      message: expect.stringMatching(/statementTimeout/),
    });
  });

  it('stops a running statement when told to', async () => {
    const side = open({ query: 'select pg_sleep(20)::text as k, now() as t' });
    const stop = new AbortController();
    const looking = side.lookup([['x']], stop.signal);
    const running = async () =>
      (
        await admin.query(
          "select 1 from pg_stat_activity where query like '%pg_sleep(20)%' and application_name = 'trueup side'",
        )
      ).rows.length > 0;
    await until('the statement runs', running);
    stop.abort(new Error('enough'));
    await expect(looking).rejects.toThrow('enough');
    await admin.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(20)%' and application_name = 'trueup side'",
    );
  });

  it.each([
    ['no_such_table', {}, /no_such_table/, 'TRU_SIDE_MISCONFIGURED'],
    ['moving', { rules: { nothing: 'text' } }, /nothing/, 'TRU_SIDE_MISCONFIGURED'],
    ['moving', { time: 'k' }, /text/, 'TRU_SIDE_MISCONFIGURED'],
    ['moving', { where: 'k =' }, /syntax/, 'TRU_SIDE_MISCONFIGURED'],
  ])('explains what is wrong with %s %j', async (table, options, words, code) => {
    const error = await scan(open({ table, ...options })).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SideError);
    expect(error).toMatchObject({ code, transient: false, message: expect.stringMatching(words) });
  });

  it('needs a table or a query, not both', () => {
    expect(() => open({})).toThrow(SideError);
    expect(() => open({ table: 'a', query: 'select 1' })).toThrow(/either/);
  });
});

describe('the clock of a PostgreSQL side', () => {
  it('shows the oldest transaction that may still write, not our own reads', async () => {
    const side = open({ table: 'moving' });
    const reading = side.scan(NOON, signal)[Symbol.asyncIterator]();
    await reading.next();
    const writer = new pg.Client({ connectionString: database.url });
    await writer.connect();
    try {
      expect((await side.clock(signal)).oldestOpen).toBeNull();
      await writer.query('begin');
      const started = (await writer.query('select extract(epoch from now()) * 1000 as ms')).rows[0].ms;
      const clock = await side.clock(signal);
      expect(clock.seesTransactions).toBe(true);
      expect(clock.oldestOpen).not.toBeNull();
      expect(Math.abs(millisOf(clock.oldestOpen ?? clock.now) - Number(started))).toBeLessThan(1);
      await writer.query('rollback');
      await until('the transaction ended', async () => (await side.clock(signal)).oldestOpen === null);
    } finally {
      await writer.end();
      await reading.return?.();
    }
  });

  it('says when another user’s transactions are hidden', async () => {
    await admin.query("create role blind login password 'x'");
    try {
      const url = new URL(database.url);
      url.username = 'blind';
      url.password = 'x';
      const clock = await open({ table: 'moving', url: url.href }).clock(signal);
      expect(clock.seesTransactions).toBe(false);
    } finally {
      await admin.query('drop role blind');
    }
  });
});

describe('what check shows of a PostgreSQL side', () => {
  it('names columns, indexes, rights and keys that only this database knows', async () => {
    await admin.query(
      `create table described (id bigint generated always as identity, k text unique, n numeric(20, 2), t timestamp)`,
    );
    await admin.query("insert into described (k, n, t) values ('a', 1.50, '2026-11-30 12:30')");
    const good = await open({ table: 'described', rules: { n: {} } }).describe(signal);
    expect(good.columns).toEqual([
      { name: 'k', type: 'text', native: 'text' },
      { name: 'n', type: 'decimal', native: 'numeric(20,2)' },
    ]);
    expect(good.samples).toMatchObject([{ key: ['a'], fields: { n: { text: '1.5' } } }]);
    expect(good.notes).toContainEqual(expect.stringContaining('no index starts with t'));
    expect(good.notes).toContainEqual(expect.stringContaining('wall time of UTC'));
    expect(good.notes).not.toContainEqual(expect.stringContaining('no unique index'));
    expect(good.warnings).toContainEqual(expect.stringContaining('may also write'));
    const surrogate = await open({ table: 'described', names: ['id'] }).describe(signal);
    expect(surrogate.warnings).toContainEqual(expect.stringContaining('id is numbered by this database'));
  });
});

async function sideSessions(): Promise<number> {
  const { rows } = await admin.query(
    "select count(*)::int as n from pg_stat_activity where datname = current_database() and application_name = 'trueup side'",
  );
  return rows[0].n;
}
