import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Side } from '../../src/reconcile/side.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { createMysql, type TestMysql } from '../support/mysql.ts';
import { compareSides, openSide } from '../support/sides.ts';

/** The same records in PostgreSQL and in MariaDB or MySQL, each in its own types. */

const RULES = {
  body: 'text',
  count: 'integer',
  amount: 'decimal',
  active: 'boolean',
  seen: 'instant',
  local: { type: 'instant', zone: 'Europe/Berlin' },
  day: 'date',
  ref: 'uuid',
  doc: 'json',
  raw: 'bytes',
  ratio: 'float',
  kind: 'text',
};

const PG_TABLE = `create table records (k text primary key, body text, count bigint, amount numeric, active boolean,
  seen timestamptz, local timestamp, day date, ref uuid, doc jsonb, raw bytea, ratio real, kind text, t timestamptz)`;
const MYSQL_TABLE = `create table records (k varchar(100) collate utf8mb4_unicode_ci primary key, body text, count bigint unsigned,
  amount decimal(30, 6), active tinyint(1), seen timestamp(6) null, local datetime(3), day date, ref binary(16), doc json,
  raw varbinary(20), ratio float, kind enum('z', 'a'), t datetime(6))`;

interface Cells {
  readonly body: string | null;
  readonly count: string | null;
  readonly amount: string | null;
  readonly active: boolean | null;
  readonly seen: string | null;
  readonly local: string | null;
  readonly day: string | null;
  readonly ref: string | null;
  readonly doc: string | null;
  /** Hexadecimal. */
  readonly raw: string | null;
  readonly ratio: string | null;
  readonly kind: string | null;
}

const SOME: Cells = {
  body: 'é 😀 ключ ',
  count: '9007199254740993',
  amount: '90071992547409930.010000',
  active: true,
  seen: '2026-03-29 01:30:00.123456',
  local: '2026-07-01 12:00:00.5',
  day: '1582-10-14',
  ref: 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
  doc: '{"b": 1.50, "a": [12345678901234567890, null, "é"]}',
  raw: '00ff61',
  ratio: '14.22035',
  kind: 'a',
};
const NONE: Cells = {
  ...{ body: null, count: null, amount: null, active: null, seen: null, local: null },
  ...{ day: null, ref: null, doc: null, raw: null, ratio: null, kind: null },
};
const SMALL: Cells = {
  ...SOME,
  ...{ body: '', count: '0', amount: '-0.1', active: false, raw: '', ratio: '0.1', kind: 'z', doc: '[]' },
};

/** What one side has instead, by the name of the field that must be found to differ. */
const PLANTED: Readonly<Record<keyof Cells, Partial<Cells>>> = {
  body: { body: 'é 😁 ключ ' },
  count: { count: '9007199254740994' },
  amount: { amount: '90071992547409930.010001' },
  active: { active: false },
  seen: { seen: '2026-03-29 01:30:00.123457' },
  local: { local: '2026-07-01 12:00:00.501' },
  day: { day: '1582-10-15' },
  ref: { ref: 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12' },
  doc: { doc: '{"b": 1.50, "a": [12345678901234567891, null, "é"]}' },
  raw: { raw: '00ff62' },
  ratio: { ratio: '14.220351' },
  kind: { kind: 'z' },
};

let postgres: TestDatabase;
let mysql: TestMysql;
let admin: pg.Client;
const opened: Side[] = [];

beforeAll(async () => {
  postgres = await createDatabase();
  mysql = await createMysql();
  admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  await admin.query(PG_TABLE);
  await mysql.admin.query(MYSQL_TABLE);
  // Keys that the two databases sort in different ways.
  const odd = ['A', 'Z', 'a-b', 'a_b', 'ab', '\uff61', '😀', "O'Brien", '10', '9'];
  const records: (readonly [string, Cells])[] = [
    ['none', NONE],
    ['small', SMALL],
    ...odd.map((key) => [key, SOME] as const),
  ];
  for (const [key, cells] of records) {
    await putPostgres(key, cells);
    await putMysql(key, cells);
  }
  for (const [field, change] of Object.entries(PLANTED)) {
    await putPostgres(`planted ${field}`, SOME);
    await putMysql(`planted ${field}`, { ...SOME, ...change });
    await putPostgres(`null ${field}`, { ...SOME, [field]: null });
    await putMysql(`null ${field}`, SOME);
  }
  await putPostgres('only in postgres', SOME);
  await putMysql('only in mysql', SOME);
});
afterAll(async () => {
  for (const side of opened) await side.close();
  await admin.end();
  await postgres.drop();
  await mysql.drop();
});

const bytes = (hex: string | null) => (hex === null ? null : Buffer.from(hex.replaceAll('-', ''), 'hex'));

async function putPostgres(key: string, cells: Cells): Promise<void> {
  const seen = cells.seen === null ? null : `${cells.seen}Z`;
  const values = [key, ...Object.values({ ...cells, seen, raw: bytes(cells.raw) }), '2026-11-30T12:30:00Z'];
  await admin.query(`insert into records values (${values.map((_, i) => `$${i + 1}`).join(', ')})`, values);
}

async function putMysql(key: string, cells: Cells): Promise<void> {
  const own = { ...cells, ref: bytes(cells.ref), raw: bytes(cells.raw) };
  const values = [key, ...Object.values(own), '2026-11-30 12:30:00'];
  await mysql.admin.query(`insert into records values (${values.map(() => '?').join(', ')})`, values);
}

function sides(): { readonly ours: Side; readonly theirs: Side } {
  const options = { table: 'records', rules: RULES, pageSize: 7 };
  const ours = openSide({ type: 'postgres', url: postgres.url, ...options });
  const theirs = openSide({ type: 'mysql', url: mysql.url, ...options });
  opened.push(ours, theirs);
  return { ours, theirs };
}

const EXPECTED = [
  ...Object.keys(PLANTED).flatMap((field) => [
    { key: [`planted ${field}`], kind: 'mismatched', fields: [field] },
    { key: [`null ${field}`], kind: 'mismatched', fields: [field] },
  ]),
];

describe.each(['merge', 'lookup'] as const)('PostgreSQL and MySQL compared by %s', (plan) => {
  it.each(['postgres', 'mysql'] as const)(
    'agree on equal records and differ where planted, %s first',
    async (first) => {
      const { ours, theirs } = sides();
      const [source, downstream] = first === 'postgres' ? [ours, theirs] : [theirs, ours];
      const result = await compareSides(source, downstream, RULES, plan);
      const found = result.suspects.map(({ key, kind, fields }) => ({
        key,
        kind,
        fields: fields.map(({ field }) => field),
      }));
      const [missing, extra] =
        first === 'postgres' ? ['only in postgres', 'only in mysql'] : ['only in mysql', 'only in postgres'];
      const expected = [
        ...EXPECTED,
        { key: [missing], kind: 'missing', fields: [] },
        { key: [extra], kind: 'extra', fields: [] },
      ];
      const byKey = (a: { key: readonly string[] }, b: { key: readonly string[] }) =>
        String(a.key) < String(b.key) ? -1 : 1;
      expect(found.sort(byKey)).toEqual(expected.sort(byKey));
      expect(result.undecided).toEqual([]);
      expect(result.counts).toMatchObject({ matched: 12 });
    },
  );
});
