import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SideRecord, Value, Window } from '../../src/reconcile/record.ts';
import type { Side } from '../../src/reconcile/side.ts';
import { createMysql, type TestMysql } from '../support/mysql.ts';
import { at } from '../support/records.ts';
import { compareSides, openSide, type SideOptions, scanAll } from '../support/sides.ts';

/** Case ids such as (N14) are those of the published list of pitfalls that these tests were made from. */

const { signal } = new AbortController();
const opened: Side[] = [];
let database: TestMysql;
let tables = 0;

beforeAll(async () => {
  database = await createMysql();
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

/** The value that a side reads from a column `v` of this type that was given this SQL literal. */
async function valueFrom(type: string, literal: string, rule: unknown = {}): Promise<Value | undefined> {
  tables += 1;
  const table = `value_${tables}`;
  await database.admin.query(
    `create table ${table} (k int, v ${type}, t timestamp(6) not null default '2026-11-30 12:30:00')`,
  );
  await database.admin.query(`insert into ${table} (k, v) values (1, ${literal})`);
  const [record] = await scanAll(open({ table, rules: { v: rule } }));
  return record?.fields['v'];
}

/** Zero dates and the like, that a strict server no longer takes. */
async function looseValueFrom(type: string, literal: string, rule: unknown = {}): Promise<Value | undefined> {
  await database.admin.query("set sql_mode = ''");
  try {
    return await valueFrom(type, literal, rule);
  } finally {
    await database.admin.query('set sql_mode = default');
  }
}

describe('values of a MySQL side are exact:', () => {
  it.each([
    ['bigint', '636009965114711235', 'N7'],
    ['bigint', '-185395119379775634', 'N8'],
    ['bigint', '9007199254740992', 'N9'],
    ['bigint', '9007199254740993', 'N9'],
    ['bigint', '-9223372036854775808', 'N9'],
    ['bigint unsigned', '18446744073709551615', 'N24'],
    ['int', '-2147483648', 'N6'],
    ['mediumint', '-8388608', 'N6'],
    ['year', '2026', 'N6'],
  ])('%s %s (%s)', async (type, literal) => {
    expect(await valueFrom(type, literal)).toEqual({ type: 'integer', text: literal });
  });

  it.each([
    ['decimal(20, 2)', '12345678901234567.89', 'N11'],
    ['decimal(20, 2)', '-0.10', 'N1', '-0.1'],
    ['decimal(65, 30)', '12345678901234567890123456789012345.000000000000000000000000000001', 'N11'],
  ])('%s %s (%s)', async (type, literal, _, text = literal) => {
    expect(await valueFrom(type, literal)).toEqual({ type: 'decimal', text });
  });

  it.each([
    ['float', '14.22035', '14.22035'],
    ['float', '0.1', '0.1'],
    ['float', '16777217', '16777216'],
    ['float', '1e-40', '1e-40'],
    ['float', '3.4028234663852886e38', '3.4028235e+38'],
    ['float(7, 4)', '14.2203', '14.2203'],
    ['double', '0.1', '0.1'],
    ['double', '4.3319172962174079e299', '4.331917296217408e+299'],
    ['double', '-0.30000000000000004', '-0.30000000000000004'],
  ])('%s %s (N14, N16)', async (type, literal, text) => {
    expect(await valueFrom(type, literal)).toMatchObject({ type: 'float', text: String(Number(text)) });
  });

  it('a float is found equal to itself and different from its neighbour (N14)', async () => {
    await database.admin.query(
      "create table floats (k int, v float, t timestamp not null default '2026-11-30 12:30')",
    );
    await database.admin.query('insert into floats (k, v) values (1, 14.22035), (2, 14.220351)');
    const rules = { v: 'float' };
    const shifted = open({
      query:
        'select 1 as k, v, t from floats where k = 2 union all select 2, 14.220351e0, t from floats where k = 1',
      rules,
    });
    const result = await compareSides(open({ table: 'floats', rules }), shifted, rules);
    expect(result.suspects.map(({ key }) => key)).toEqual([['1']]);
  });

  it('bits and booleans (B1)', async () => {
    expect(
      await valueFrom('bit(64)', "b'1000000000000000000000000000000000000000000000000000000000000001'"),
    ).toEqual({
      type: 'integer',
      text: '9223372036854775809',
    });
    expect(await valueFrom('tinyint(1)', 'true')).toEqual({ type: 'integer', text: '1' });
    expect(await valueFrom('tinyint(1)', 'true', 'boolean')).toEqual({ type: 'boolean', text: 'true' });
    expect(await valueFrom('bit(1)', "b'0'", 'boolean')).toEqual({ type: 'boolean', text: 'false' });
    expect(await valueFrom('tinyint(1)', '2', 'boolean')).toMatchObject({ type: 'undecided' });
    expect(await valueFrom('tinyint(1)', 'null', 'boolean')).toEqual({ type: 'null' });
  });

  it('labels of enum and set (B6)', async () => {
    expect(await valueFrom("enum('b', 'a')", "'a'")).toEqual({ type: 'text', text: 'a' });
    expect(await valueFrom("set('b', 'a', 'c')", "'a,b'")).toEqual({ type: 'text', text: 'b,a' });
  });

  it('bytes, padded as the column pads them (J8, J9)', async () => {
    expect(await valueFrom('varbinary(8)', "X'00ff'")).toEqual({ type: 'bytes', text: '00ff' });
    expect(await valueFrom('blob', "X''")).toEqual({ type: 'bytes', text: '' });
    expect(await valueFrom('binary(4)', "X'61'")).toEqual({ type: 'bytes', text: '61000000' });
    expect(await valueFrom('varbinary(20)', "'ключ'", 'text')).toEqual({ type: 'text', text: 'ключ' });
    expect(await valueFrom('varbinary(8)', "X'ff'", 'text')).toMatchObject({ type: 'undecided', text: 'ff' });
    const uuid = 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';
    expect(await valueFrom('binary(16)', `X'${uuid.replaceAll('-', '')}'`, 'uuid')).toEqual({
      type: 'uuid',
      text: uuid,
    });
    expect(await valueFrom('uuid', `'${uuid.toUpperCase()}'`)).toEqual({ type: 'uuid', text: uuid });
  });

  it('text of every character set, whole and to the last blank (S8, S9, S13, S15, S19)', async () => {
    const text = (value: string) => ({ type: 'text', text: value });
    expect(await valueFrom('varchar(20) collate utf8mb4_general_ci', "'a😀 '")).toEqual(text('a😀 '));
    expect(await valueFrom('varchar(20) character set latin1', "'Ärger €'")).toEqual(text('Ärger €'));
    expect(await valueFrom('varchar(20) character set utf16', "'ключ'")).toEqual(text('ключ'));
    expect(await valueFrom('char(6)', "'AB'")).toEqual(text('AB'));
    expect(await valueFrom('varchar(20)', "''")).toEqual(text(''));
    const long = 'x'.repeat(100_000);
    expect(await valueFrom('longtext', `'${long}'`)).toEqual(text(long));
  });

  it('JSON with its numbers (J1, J5)', async () => {
    const literal = `'{"b": 1.50, "a": 12345678901234567890, "c": ["é", 1e2]}'`;
    const text = '{"a":12345678901234567890,"b":1.5,"c":["é",100]}';
    expect(await valueFrom('json', literal)).toEqual({ type: 'json', text });
    expect(await valueFrom('text', literal, 'json')).toEqual({ type: 'json', text });
  });

  it('times of day without needless zeros (T8)', async () => {
    expect(await valueFrom('time(6)', "'12:30:00.5'")).toEqual({ type: 'text', text: '12:30:00.5' });
    expect(await valueFrom('time(3)', "'12:30:00'")).toEqual({ type: 'text', text: '12:30:00' });
    expect(await valueFrom('time', "'-838:59:59'")).toEqual({ type: 'text', text: '-838:59:59' });
  });
});

describe('times of a MySQL side', () => {
  const instant = (text: string) => ({ type: 'instant', text });

  it('keep microseconds and whatever year they name (T7, T8, T11)', async () => {
    expect(await valueFrom('datetime(6)', "'2026-11-30 12:00:00.242999'")).toEqual(
      instant('2026-11-30T12:00:00.242999Z'),
    );
    expect(await valueFrom('datetime(1)', "'2026-11-30 12:00:00.1'")).toEqual(
      instant('2026-11-30T12:00:00.100000Z'),
    );
    expect(await valueFrom('timestamp', "'2026-11-30 12:00:00'")).toEqual(
      instant('2026-11-30T12:00:00.000000Z'),
    );
    expect(await valueFrom('datetime', "'0001-01-01 00:00:00'")).toEqual(
      instant('0001-01-01T00:00:00.000000Z'),
    );
    expect(await valueFrom('date', "'9999-12-31'")).toEqual({ type: 'date', text: '9999-12-31' });
    expect(await valueFrom('date', "'1582-10-14'")).toEqual({ type: 'date', text: '1582-10-14' });
  });

  it('that are zero or no days are undecided, never another day', async () => {
    for (const [type, literal] of [
      ['datetime', "'0000-00-00 00:00:00'"],
      ['timestamp', "'0000-00-00 00:00:00'"],
      ['date', "'0000-00-00'"],
      ['date', "'2026-11-00'"],
    ] as const) {
      expect(await looseValueFrom(type, literal)).toMatchObject({ type: 'undecided' });
    }
  });

  it('are those of UTC whatever the zone of the server (T1)', async () => {
    await database.admin.query('create table stamped (k int, v timestamp null, t timestamp null)');
    await database.admin.query("set time_zone = '+08:00'");
    await database.admin.query(
      "insert into stamped values (1, '2026-11-30 20:30:00', '2026-11-30 20:30:00')",
    );
    await database.admin.query("set time_zone = '+00:00'");
    // The rule's zone is for times that have none.
    const rules = Object.fromEntries(
      ['v', 't'].map((name) => [name, { type: 'instant', zone: 'Asia/Shanghai' }]),
    );
    expect(await scanAll(open({ table: 'stamped', rules }))).toMatchObject([
      { time: at('12:30'), fields: { v: instant('2026-11-30T12:30:00.000000Z') } },
    ]);
  });

  it('without a zone are wall times of the rule’s zone, on both sides of a clock change (T2, T3)', async () => {
    const rule = { type: 'instant', zone: 'America/New_York' };
    const read = (literal: string) => valueFrom('datetime', literal, rule);
    expect(await read("'2024-11-03 00:30'")).toEqual(instant('2024-11-03T04:30:00.000000Z'));
    expect(await read("'2024-11-03 02:30'")).toEqual(instant('2024-11-03T07:30:00.000000Z'));
    expect(await read("'2024-11-03 01:30'")).toMatchObject({ type: 'undecided' });
    expect(await read("'2024-03-10 02:30'")).toMatchObject({ type: 'undecided' });
  });

  it('of a window are wall times too, and the hour that happens twice is listed (T3)', async () => {
    await database.admin.query('create table wall (k varchar(9), t datetime)');
    await database.admin.query(`insert into wall values
      ('before', '2024-11-03 00:59'), ('twice', '2024-11-03 01:30'), ('after', '2024-11-03 02:00'), ('late', '2024-11-03 03:00')`);
    const side = open({
      table: 'wall',
      fields: ['t'],
      rules: { t: { type: 'instant', zone: 'America/New_York' } },
    });
    const window = { from: '2024-11-03T05:00:00.000000Z', to: '2024-11-03T07:30:00.000000Z' } as Window;
    expect((await scanAll(side, window)).map(({ key, time }) => [key[0], time])).toEqual([
      ['after', '2024-11-03T07:00:00.000000Z'],
      ['twice', null],
    ]);
  });

  it.each([
    ['datetime', 'key (t)'],
    ['datetime', 'key (k)'],
    ['datetime(6)', 'key (t)'],
    ['timestamp(3) null', 'key (t)'],
  ])('of a window are compared in native precision: %s, %s (T10)', async (type, key) => {
    tables += 1;
    const table = `edges_${tables}`;
    await database.admin.query(`create table ${table} (k int, t ${type}, ${key})`);
    await database.admin.query(
      `insert into ${table} values (0, '2026-11-30 12:00:00'), (1, '2026-11-30 12:00:01'), (2, '2026-11-30 12:00:02')`,
    );
    await database.admin.query(`insert into ${table} select seq + 100, '2027-01-01' from seq_1_to_500`);
    const keys = async (from: string, to: string) =>
      (await scanAll(open({ table }), { from: at(from), to: at(to) })).map(
        (record: SideRecord) => record.key[0],
      );
    expect(await keys('12:00:00.000001', '12:00:01.000001')).toEqual(['1']);
    expect(await keys('12:00:00', '12:00:01')).toEqual(['0']);
    expect(await keys('12:00:00.999999', '12:00:02')).toEqual(['1']);
    expect(await keys('11:59:59.999999', '12:00:02.000001')).toEqual(['0', '1', '2']);
  });

  it('may be days', async () => {
    await database.admin.query('create table by_day (k int, t date)');
    await database.admin.query(
      "insert into by_day values (1, '2026-11-29'), (2, '2026-11-30'), (3, '2026-12-01')",
    );
    const window = { from: at('00:00'), to: '2026-12-01T00:00:00.000000Z' } as Window;
    expect((await scanAll(open({ table: 'by_day' }), window)).map(({ key }) => key)).toEqual([['2']]);
  });
});

describe('columns of a MySQL side', () => {
  it('of a query or a view have the types that the server gives them', async () => {
    await database.admin.query(
      "create table base (k varchar(9), n decimal(20, 2), f float, j json, e enum('b', 'a'), t timestamp null)",
    );
    await database.admin.query(
      `insert into base values ('a', 1.50, 0.1, '{"a": 1}', 'a', '2026-11-30 12:30')`,
    );
    await database.admin.query('create view seen as select k, n, f, j, e, t from base');
    const rules = { n: {}, f: {}, j: {}, e: {} };
    const expected = [
      {
        fields: {
          n: { type: 'decimal', text: '1.5' },
          f: { type: 'float', text: '0.1' },
          j: { type: 'json', text: '{"a":1}' },
          e: { type: 'text', text: 'a' },
        },
      },
    ];
    expect(await scanAll(open({ table: 'seen', rules }))).toMatchObject(expected);
    expect(await scanAll(open({ query: 'select * from base -- all\n;', rules }))).toMatchObject(expected);
    expect(
      await open({ query: 'select distinct k, n, f, j, e, t from base', rules }).lookup([['a']], signal),
    ).toMatchObject(expected);
  });

  it('are named by their catalogue type', async () => {
    const { columns } = await open({ table: 'base', rules: { n: {}, e: {} } }).describe(signal);
    expect(columns).toEqual([
      { name: 'k', type: 'text', native: 'varchar(9)' },
      { name: 'n', type: 'decimal', native: 'decimal(20,2)' },
      { name: 'e', type: 'text', native: "enum('b','a')" },
    ]);
  });
});
