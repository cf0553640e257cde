import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Key } from '../../src/reconcile/record.ts';
import type { Side } from '../../src/reconcile/side.ts';
import type { Column } from '../../src/reconcile/sides/mysql-columns.ts';
import { keyColumnOf } from '../../src/reconcile/sides/mysql-key.ts';
import { keyConditions } from '../../src/reconcile/sides/mysql-lookup.ts';
import { flavourOf, pinStatements } from '../../src/reconcile/sides/mysql-pins.ts';
import { createMysql, type TestMysql } from '../support/mysql.ts';
import { compareSides, openSide, type SideOptions, scanAll } from '../support/sides.ts';

/** Case ids such as (S1) are those of the published list of pitfalls that these tests were made from. */

const { signal } = new AbortController();
const opened: Side[] = [];
let database: TestMysql;

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

const LATIN1 = { charset: 'latin1', collation: 'latin1_swedish_ci' };
const PLAIN: Column = {
  name: 'k',
  kind: 'text',
  type: 'text',
  native: 'varchar(20)',
  unsigned: false,
  text: null,
  origin: null,
};

const NOONISH = "t timestamp(6) not null default '2026-11-30 12:30:00'";

/** Makes a table of one key column with these SQL literals in it. */
async function table(name: string, column: string, ...literals: readonly string[]): Promise<void> {
  await database.admin.query(`create table ${name} (k ${column}, ${NOONISH}, key (t))`);
  if (literals.length === 0) return;
  await database.admin.query(
    `insert into ${name} (k) values ${literals.map((each) => `(${each})`).join(', ')}`,
  );
}

/** Scans in the order of the canonical bytes, and finds each key again by its canonical text. */
async function expectKeys(side: Side, sorted: readonly Key[]): Promise<void> {
  expect((await scanAll(side)).map((record) => record.key)).toEqual(sorted);
  const found = await side.lookup(sorted, signal);
  expect(found.map((record) => record.key).sort()).toEqual([...sorted].sort());
}

const sortNote = async (name: string) =>
  (await open({ table: name }).describe(signal)).notes.find((note) => note.includes('sort')) ?? '';

describe('text keys of a MySQL side', () => {
  const MIXED = ["'a-b'", "'ab'", "'a_b'", "'B'", "'a'", "'\uff61'", "'😀'", "'é'"];
  const SORTED = [['B'], ['a'], ['a-b'], ['a_b'], ['ab'], ['é'], ['\uff61'], ['😀']];

  it.each([
    ['utf8mb4_general_ci', 'cast('],
    ['utf8mb4_unicode_ci', 'cast('],
    // Pads with blanks: a control character would sort before the end of a text.
    ['utf8mb4_bin', 'cast('],
    ['utf8mb4_nopad_bin', 'by bytes as it is'],
  ])('sort by bytes under %s (S1, S6)', async (collation, note) => {
    await table(`by_${collation}`, `varchar(20) collate ${collation}`, ...MIXED);
    await expectKeys(open({ table: `by_${collation}` }), SORTED);
    expect(await sortNote(`by_${collation}`)).toContain(note);
  });

  it('sort by bytes where blanks pad and control characters come first', async () => {
    await table('padded', 'varchar(20) collate utf8mb4_bin', "'a'", "X'6101'", "'a!'", "'a '");
    await expectKeys(open({ table: 'padded' }), [['a'], ['a\u0001'], ['a '], ['a!']]);
  });

  it('sort by an index where the collation is that of the bytes', async () => {
    await database.admin.query(
      `create table indexed (k varchar(20) collate utf8mb4_nopad_bin primary key, ${NOONISH})`,
    );
    await database.admin.query("insert into indexed (k) select concat('k', seq) from seq_1_to_3000");
    const [plan] = await database.admin.query('explain select k from indexed order by k');
    expect(plan).toMatchObject([{ key: 'PRIMARY' }]);
    expect(await sortNote('indexed')).toBe('k sorts by bytes as it is');
    expect((await scanAll(open({ table: 'indexed' }))).length).toBe(3000);
  });

  it('are apart where a collation calls them equal (S8, S11, S12)', async () => {
    await table(
      'loose',
      'varchar(20) collate utf8mb4_general_ci',
      "'Bob'",
      "'bob'",
      "'😀'",
      "'bób'",
      "'bob '",
    );
    await expectKeys(open({ table: 'loose' }), [['Bob'], ['bob'], ['bob '], ['bób'], ['😀']]);
    expect(await open({ table: 'loose' }).lookup([['BOB'], ['😁'], [' bob']], signal)).toEqual([]);
    expect((await open({ table: 'loose' }).lookup([['bob']], signal)).map(({ key }) => key)).toEqual([
      ['bob'],
    ]);
    const result = await compareSides(open({ table: 'loose' }), open({ table: 'loose' }));
    expect(result).toMatchObject({ counts: { source: 5, matched: 5 }, suspects: [] });
  });

  it('are not counted as repeated where only the collation says so', async () => {
    const { warnings } = await open({ table: 'loose' }).describe(signal);
    expect(warnings).not.toContainEqual(expect.stringContaining('more than one record'));
  });

  it('of another character set are found by the characters they mean (S13)', async () => {
    const literals = ["'Ärger'", "'€5'", "'plain'"];
    await table('in_latin1', 'varchar(20) character set latin1 collate latin1_german1_ci', ...literals);
    const side = open({ table: 'in_latin1' });
    await expectKeys(side, [['plain'], ['Ärger'], ['€5']]);
    // What the character set cannot write is not there, and does not turn into a question mark.
    await database.admin.query("insert into in_latin1 (k) values ('?')");
    expect(await side.lookup([['😀'], ['ключ']], signal)).toEqual([]);
    await table('in_utf16', 'varchar(20) character set utf16', "'\uff61'", "'😀'", "'B'");
    await expectKeys(open({ table: 'in_utf16' }), [['B'], ['\uff61'], ['😀']]);
  });

  it('longer than what a sort looks at by default are sorted to the end', async () => {
    const long = 'x'.repeat(2000);
    await table(
      'long_keys',
      'varchar(3000) collate utf8mb4_general_ci',
      `'${long}b'`,
      `'${long}a'`,
      `'${long}c'`,
    );
    await expectKeys(open({ table: 'long_keys' }), [[`${long}a`], [`${long}b`], [`${long}c`]]);
    await table('text_keys', 'text', `'${long}b'`, `'${long}a'`);
    await expectKeys(open({ table: 'text_keys' }), [[`${long}a`], [`${long}b`]]);
  });

  it('with any character are values and never SQL (K8, S25)', async () => {
    await table('quoted', 'varchar(60) collate utf8mb4_bin');
    const keys = ["O'Brien", "' or 1=1 -- ", 'back\\slash', '"', '`', '\\', "\\'", 'a\0b', '%', '_', 'x'];
    for (const key of keys) await database.admin.query('insert into quoted (k) values (?)', [key]);
    await expectKeys(
      open({ table: 'quoted' }),
      keys.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).map((key) => [key]),
    );
    expect(await open({ table: 'quoted' }).lookup([["' or '1'='1"], ['%%']], signal)).toEqual([]);
  });

  it('of a char column come without the blanks that fill it up (S15)', async () => {
    await table('chars', 'char(6)', "'AB'", "' C'");
    await expectKeys(open({ table: 'chars' }), [[' C'], ['AB']]);
  });

  it('are looked up by an index, also in large numbers and in a column of latin1', async () => {
    await database.admin.query(
      `create table many (k varchar(20) character set latin1 primary key, ${NOONISH})`,
    );
    await database.admin.query("insert into many (k) select concat('k', seq) from seq_1_to_20000");
    const keys = Array.from({ length: 2500 }, (_, i) => [`k${i + 1}`]);
    expect(await open({ table: 'many' }).lookup(keys, signal)).toHaveLength(2500);
    const column = keyColumnOf('k', { ...PLAIN, text: LATIN1 }, undefined);
    if (typeof column === 'string') throw new Error(column);
    const [condition = ''] = keyConditions([column], keys, 5000);
    const session = await createConnection(database.url);
    try {
      const [[{ version } = { version: '' }]] = await session.query<RowDataPacket[] & { version: string }[]>(
        'select version() as version',
      );
      for (const statement of pinStatements(flavourOf(version), 1000)) await session.query(statement);
      const [plan] = await session.query(`explain select k from many where ${condition}`);
      expect(plan).toMatchObject([{ type: 'range', key: 'PRIMARY' }]);
    } finally {
      await session.end();
    }
  });
});

describe('other keys of a MySQL side', () => {
  it('may be integers of any size and sign (N6, N7, N9, N24, K14)', async () => {
    const signed = ['9', '10', '9007199254740993', '-185395119379775634', '0', '-1'];
    await table('by_bigint', 'bigint', ...signed);
    await expectKeys(
      open({ table: 'by_bigint' }),
      signed.sort().map((key) => [key]),
    );
    await table('by_unsigned', 'bigint unsigned', '18446744073709551615', '9', '10');
    await expectKeys(open({ table: 'by_unsigned' }), [['10'], ['18446744073709551615'], ['9']]);
    await table('filled', 'int(8) zerofill', '42', '7');
    await expectKeys(open({ table: 'filled' }), [['42'], ['7']]);
  });

  it('may be decimals whose scale is not part of the key', async () => {
    await table('by_decimal', 'decimal(20, 3)', '1.10', '100', '-3', '0.5', '0', '9');
    await expectKeys(open({ table: 'by_decimal' }), [['-3'], ['0'], ['0.5'], ['1.1'], ['100'], ['9']]);
    await table('by_whole', 'decimal(20, 0)', '100', '20');
    await expectKeys(open({ table: 'by_whole' }), [['100'], ['20']]);
  });

  it.each([
    ['date', "'2026-01-31'", '2026-01-31'],
    ['datetime', "'2026-01-01 01:00:00'", '2026-01-01T01:00:00.000000Z'],
    ['datetime(6)', "'2026-01-01 01:00:00.5'", '2026-01-01T01:00:00.500000Z'],
    ['timestamp(6)', "'2026-01-01 01:00:00.123456'", '2026-01-01T01:00:00.123456Z'],
    ['time(6)', "'-100:30:00.5'", '-100:30:00.5'],
    ['year', '2026', '2026'],
    ['bit(10)', "b'101'", '5'],
    ['tinyint(1)', 'true', '1'],
    ["enum('b', 'a')", "'a'", 'a'],
    ["set('b', 'a')", "'a,b'", 'b,a'],
    ['varbinary(8)', "X'00FF'", '00ff'],
    ['binary(4)', "X'6100'", '61000000'],
    ['uuid', "'B0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    ['inet6', "'::1'", '::1'],
  ])('may be of type %s', async (type, literal, canonical) => {
    const name = `typed_${type.replace(/\W/g, '')}`;
    await table(name, `${type} null`, literal);
    await expectKeys(open({ table: name }), [[canonical]]);
  });

  it('that are labels sort by the label, not by its number (B6)', async () => {
    await table('labels', "enum('z', 'b', 'a') collate utf8mb4_nopad_bin", "'z'", "'a'", "'b'");
    const side = open({ table: 'labels' });
    await expectKeys(side, [['a'], ['b'], ['z']]);
    expect(await side.lookup([['1'], ['c'], ['B']], signal)).toEqual([]);
  });

  it('that are years are not taken for short numbers', async () => {
    await table('years', 'year', '2005');
    expect(await open({ table: 'years' }).lookup([['5'], ['05']], signal)).toEqual([]);
  });

  it('may be uuids in bytes or text', async () => {
    const uuid = 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';
    await table('uuid_bytes', 'binary(16) primary key', `X'${uuid.replaceAll('-', '')}'`);
    await table('uuid_text', 'char(36)', `'${uuid.toUpperCase()}'`);
    await table('uuid_bin', 'char(36) collate utf8mb4_bin', `'${uuid.toUpperCase()}'`);
    for (const name of ['uuid_bytes', 'uuid_text', 'uuid_bin']) {
      await expectKeys(open({ table: name, rules: { k: 'uuid' } }), [[uuid]]);
    }
  });

  it('may be text in a binary column', async () => {
    await table('text_bytes', 'varbinary(20)', "'ключ'", "'a '", "'a'", "X'ff'");
    const side = open({ table: 'text_bytes', rules: { k: 'text' } });
    expect(await side.lookup([['a'], ['ключ']], signal)).toHaveLength(2);
    // Bytes that are no text make no key.
    expect((await scanAll(side)).map(({ key }) => key)).toEqual([['a'], ['a '], ['ключ'], []]);
  });

  it('that no value of the column can have are simply not there (K7)', async () => {
    const absent = [['x'], ['1.5'], ['99999999999999999999'], ['1 or 1=1'], ['9e0'], [''], ['9']];
    expect(await open({ table: 'by_bigint' }).lookup(absent, signal)).toHaveLength(1);
    expect(await open({ table: 'typed_date' }).lookup([['x'], ['2026-02-31'], ['infinity']], signal)).toEqual(
      [],
    );
    expect(await open({ table: 'typed_time6' }).lookup([['x'], ['12:61:00']], signal)).toEqual([]);
    expect(await open({ table: 'typed_uuid' }).lookup([['x']], signal)).toEqual([]);
    expect(await open({ table: 'typed_inet6' }).lookup([['x']], signal)).toEqual([]);
    expect(await open({ table: 'typed_varbinary8' }).lookup([['zz'], ['0']], signal)).toEqual([]);
  });

  it('of fixed bytes are found by all of their bytes (J8)', async () => {
    const side = open({ table: 'typed_binary4' });
    expect(await side.lookup([['61'], ['6100']], signal)).toEqual([]);
    expect(await side.lookup([['61000000']], signal)).toHaveLength(1);
  });

  it('may have several parts, in columns with upper case, reserved and quoted names (K9)', async () => {
    await database.admin.query(
      'create table `Order ``Tasks``` (`select` int, `OrderId` varchar(20) character set latin1, `when` timestamp null, `Amount` decimal(10, 2), key (`select`, `OrderId`))',
    );
    await database.admin.query(`insert into \`Order \`\`Tasks\`\`\` values
      (10, 'b', '2026-11-30 12:30', 1), (9, 'a', '2026-11-30 12:30', 2), (10, 'a', '2026-11-30 12:30', 3)`);
    const side = open({
      table: `${database.name}.\`Order \`\`Tasks\`\`\``,
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
    const absent = [
      ['10', 'c'],
      ['9', 'b'],
      ['x', 'a'],
      ['10', 'A'],
    ];
    expect(await side.lookup(absent, signal)).toEqual([]);
  });

  it('with a null make their records undecided, and the rest is compared (H13)', async () => {
    await database.admin.query(`create table with_null (k varchar(9), n int, ${NOONISH})`);
    await database.admin.query(
      "insert into with_null (k, n) values (null, 1), ('a', 1), (null, 2), ('b', 1)",
    );
    const side = () => open({ table: 'with_null', rules: { n: 'integer' } });
    const result = await compareSides(side(), side(), { n: 'integer' });
    expect(result.counts).toMatchObject({ source: 4, matched: 2, undecided: 4 });
    expect((await side().describe(signal)).warnings).toContainEqual(
      expect.stringContaining('2 records have a null in their key'),
    );
  });

  it('that are not unique make duplicates with counts, and check says so (K1)', async () => {
    await table('twice', 'varchar(9)', "'6'", "'6'", "'7'");
    const once = open({ query: "select '6' as k, t from twice limit 1" });
    const result = await compareSides(open({ table: 'twice', where: "k <> '7'" }), once);
    expect(result.suspects).toMatchObject([{ kind: 'duplicate', sourceCount: 2, downstreamCount: 1 }]);
    expect((await open({ table: 'twice' }).describe(signal)).warnings).toContainEqual(
      '1 keys belong to more than one record',
    );
  });

  it('are refused where a lookup by their text would miss records', async () => {
    await database.admin.query(
      `create table bad_keys (f double, j json, s varchar(9), b tinyint(1), ${NOONISH})`,
    );
    const refusal = { code: 'TRU_SIDE_MISCONFIGURED', transient: false };
    await expect(scanAll(open({ table: 'bad_keys', names: ['f'] }))).rejects.toMatchObject(refusal);
    await expect(scanAll(open({ table: 'bad_keys', names: ['j'] }))).rejects.toMatchObject(refusal);
    const numbered = open({ table: 'bad_keys', names: ['s'], rules: { s: 'integer' } });
    await expect(numbered.lookup([['7']], signal)).rejects.toMatchObject(refusal);
    const flags = open({ table: 'bad_keys', names: ['b'], rules: { b: 'boolean' } });
    await expect(flags.lookup([['true']], signal)).rejects.toMatchObject(refusal);
  });
});
