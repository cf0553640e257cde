import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ruleSchema, sideSchema } from '../../src/config/schema.ts';
import { choosePlan, type ReadInput, type ReadResult, readWindow } from '../../src/reconcile/read-window.ts';
import { keyText } from '../../src/reconcile/record.ts';
import type { Side } from '../../src/reconcile/side.ts';
import { createSide } from '../../src/reconcile/sides/create.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { NOON } from '../support/records.ts';

const { signal } = new AbortController();
let database: TestDatabase;
let admin: pg.Client;
const opened: Side[] = [];

beforeAll(async () => {
  database = await createDatabase();
  admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  await admin.query("create type stage as enum ('zero', 'one', 'two', 'three', 'four')");
});
afterAll(async () => {
  for (const side of opened) await side.close();
  await admin.end();
  await database.drop();
});

interface Options {
  readonly names?: readonly string[];
  readonly rules?: Record<string, unknown>;
  readonly [option: string]: unknown;
}

function open({ names = ['k'], rules = {}, ...config }: Options): Side {
  const side = createSide(sideSchema.parse({ type: 'postgres', url: database.url, time: 't', ...config }), {
    name: 'source',
    keyNames: names,
    rules: parse(rules),
    targets: {},
    readGate: { take: () => Promise.resolve() },
  });
  opened.push(side);
  return side;
}

function parse(rules: Record<string, unknown>) {
  return Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, ruleSchema.parse(rule)]));
}

type Plan = ReadInput['plan'];

function read(
  source: Side,
  downstream: Side,
  rules: Record<string, unknown>,
  plan: Plan,
): Promise<ReadResult> {
  return readWindow({ window: NOON, source, downstream, plan, rules: parse(rules), digestKey: 'k', signal });
}

/** What a reading found, without the order in which it found it and the plan that it used. */
function answer({ counts, suspects, undecided }: ReadResult) {
  const byKey = (a: { key: readonly string[] }, b: { key: readonly string[] }) =>
    keyText(a.key) < keyText(b.key) ? -1 : 1;
  return { counts, suspects: [...suspects].sort(byKey), undecided: [...undecided].sort(byKey) };
}

const ROWS = 2000;

/** Rows in the window, some beside it, and every 400th in the hour before. */
const TIME = `timestamptz '2026-11-30 12:00+00' + case when i % 400 = 7 then interval '-10 minutes'
  else make_interval(secs => i % 3600) end`;

/** Values of many types; amounts of one scale, so that equal ones are written alike. */
const FIELDS = `(i * 13 % 997)::numeric(18, 2) / 4 as amount, case when i % 11 = 0 then null else 'note ' || i end as note,
  i::float8 / 7 as ratio, i % 2 = 0 as paid, now()::date - i as due, jsonb_build_object('n', i, 'b', null) as doc,
  decode(lpad(to_hex(i), 8, '0'), 'hex') as raw, ${TIME} as t`;

const RULES = { amount: 'decimal', note: 'text', ratio: {}, paid: {}, due: {}, doc: {}, raw: {} };

let made = 0;

/** Two tables that agree but for what is planted: missing, extra, renamed, mismatched, doubled, moved in time, null keys. */
async function plant(key: string, columns: readonly string[], nullable = true) {
  made += 1;
  const [a, b] = [`a_${made}`, `b_${made}`];
  await admin.query(
    `create table ${a} as select ${key}, ${FIELDS} from generate_series(1, ${ROWS}) i order by random()`,
  );
  await admin.query(`create table ${b} as select * from ${a} order by random()`);
  const each = (n: number) =>
    `ctid in (select ctid from ${b} order by ${columns.join(', ')}, t offset ${n} limit 9)`;
  await admin.query(`delete from ${b} where ${each(10)}`);
  await admin.query(`delete from ${a} where ctid in (select ctid from ${a} order by md5(note) limit 9)`);
  await admin.query(`update ${b} set amount = amount + 0.01 where ${each(500)}`);
  await admin.query(`update ${b} set note = note || E'\\t\\\\ \\n' where ${each(900)}`);
  await admin.query(`update ${b} set doc = null, raw = null where ${each(1300)}`);
  // Over there these stand just outside the window.
  await admin.query(`update ${b} set t = t + interval '2 hours' where ${each(1700)}`);
  // Twice on both sides with the same bytes, and twice on one side.
  await admin.query(
    `create temporary table twice as select * from ${a} where t >= '2026-11-30 12:00+00' order by note limit 5`,
  );
  await admin.query(
    `insert into ${b} select * from ${a} where t >= '2026-11-30 12:00+00' order by md5(raw) limit 4`,
  );
  for (const table of [a, a, b, b]) await admin.query(`insert into ${table} select * from twice`);
  await admin.query('drop table twice');
  if (nullable) {
    const nulls = columns
      .map((column, i) => `${i === columns.length - 1 ? 'null' : column} as ${column}`)
      .join(', ');
    const others = 'amount, note, ratio, paid, due, doc, raw, t';
    await admin.query(`insert into ${a} select ${nulls}, ${others} from ${a} where note like '%99'`);
    await admin.query(`insert into ${b} select ${nulls}, ${others} from ${b} where note like '%9_8'`);
  }
  return [a, b] as const;
}

const KEYS: readonly (readonly [name: string, key: string, columns: readonly string[]])[] = [
  ['text by bytes', `('ORD-' || i) collate "C" as k`, ['k']],
  [
    'text by a language',
    `((array['a-','A','é','\uff61','😀', E'a\\t', E'a\\\\', 'ab'])[1 + i % 8] || i::text) collate "en-x-icu" as k`,
    ['k'],
  ],
  ['varchar', `('o' || i * 37)::varchar(40) as k`, ['k']],
  ['padded characters', `('o' || i)::char(12) as k`, ['k']],
  ['enumerations and numbers', `('{zero,one,two,three,four}'::stage[])[1 + i % 5] as k, i as n`, ['k', 'n']],
  ['integers', `(i - 1500) * 1429 as k`, ['k']],
  ['large integers', `(i - 1500)::bigint * 6148914691236 as k`, ['k']],
  ['small integers', `(i - 1500)::smallint as k`, ['k']],
  ['uuids', `md5(i::text)::uuid as k`, ['k']],
  ['times', `timestamptz '1999-12-31 23:00+00' + make_interval(secs => (i - 1500) * 1.000001) as k`, ['k']],
  ['dates', `date '2000-01-01' + (i - 1500) as k`, ['k']],
  ['text and an integer', `('shop ' || i % 7) as k, (i - 1500) as n`, ['k', 'n']],
];

describe('plan raw gives the answer of merge and lookup', () => {
  it.each(KEYS)('for keys that are %s', async (_, key, columns) => {
    const [a, b] = await plant(key, columns);
    const sides = () =>
      [
        open({ table: a, names: columns, rules: RULES }),
        open({ table: b, names: columns, rules: RULES }),
      ] as const;
    const raw = await read(...sides(), RULES, 'raw');
    expect(raw.plan.name).toBe('raw');
    expect(answer(raw)).toEqual(answer(await read(...sides(), RULES, 'merge')));
    expect(answer(raw)).toEqual(answer(await read(...sides(), RULES, 'lookup')));
    for (const kind of ['matched', 'missing', 'extra', 'mismatched', 'duplicate', 'undecided'] as const) {
      expect(raw.counts[kind]).toBeGreaterThan(0);
    }
  });

  it('where columns differ in type, so that the text format is used', async () => {
    const [a, b] = await plant(`(i - 1500) * 1429 as k, ('o' || i || E'\\t') as s`, ['k', 's']);
    await admin.query(`alter table ${b} alter column k type bigint, alter column s type varchar(60)`);
    const sides = () =>
      [
        open({ table: a, names: ['k', 's'], rules: RULES }),
        open({ table: b, names: ['k', 's'], rules: RULES }),
      ] as const;
    const raw = await read(...sides(), RULES, 'raw');
    expect(answer(raw)).toEqual(answer(await read(...sides(), RULES, 'merge')));
    expect(raw.counts.mismatched).toBeGreaterThan(0);
  });

  it('where rows hold more than what is compared, or less', async () => {
    const [a, b] = await plant(`('ORD-' || i) as k`, ['k']);
    await admin.query(`alter table ${a} add column user_id int`);
    // The same for rows that are doubled: of those, any may be the one that is shown.
    await admin.query(`update ${a} set user_id = hashtext(k)`);
    const rules = { amount: 'decimal', note: { ignore: true } };
    const sides = () =>
      [
        open({ table: a, fields: ['amount', 'note', 'user_id'], rules }),
        open({ table: b, fields: { amount: 'amount', note: 'raw' }, rules }),
      ] as const;
    const raw = await read(...sides(), rules, 'raw');
    expect(answer(raw)).toEqual(answer(await read(...sides(), rules, 'merge')));
    const [found] = raw.suspects.filter((finding) => finding.kind === 'missing');
    expect(found?.source?.fields['user_id']?.type).toBe('integer');
    expect(found?.source?.time).not.toBeNull();
  });

  it('where equal values are written in different bytes', async () => {
    const [a, b] = await plant(`('ORD-' || i) as k`, ['k']);
    for (const table of [a, b]) await admin.query(`alter table ${table} alter column amount type numeric`);
    await admin.query(`update ${b} set amount = amount::text::numeric * 1.000, note = upper(note)`);
    const rules = { amount: { type: 'decimal', tolerance: '0.01' }, note: { ignoreCase: true } };
    const sides = () => [open({ table: a, rules }), open({ table: b, rules })] as const;
    const raw = await read(...sides(), rules, 'raw');
    expect(answer(raw)).toEqual(answer(await read(...sides(), rules, 'merge')));
    expect(raw.counts.matched).toBeGreaterThan(ROWS / 2);
  });

  it('for empty windows, on one side or both', async () => {
    const [a] = await plant('i as k', ['k'], false);
    const some = () => open({ table: a, rules: RULES });
    const none = () => open({ table: a, where: 'k < 0', rules: RULES });
    for (const [source, downstream] of [
      [some, none],
      [none, some],
      [none, none],
    ] as const) {
      const raw = await read(source(), downstream(), RULES, 'raw');
      expect(answer(raw)).toEqual(answer(await read(source(), downstream(), RULES, 'merge')));
    }
  });
});

describe('plan auto', () => {
  const BASE = `create table base (k text primary key, n int, wall timestamp, due date, code char(4), amount numeric,
    doc json, t timestamptz, local timestamp)`;
  const choose = async (config: Record<string, unknown>, rules: Record<string, unknown> = {}) => {
    const side = () => open({ table: 'base', rules, ...config });
    return choosePlan({ source: side(), downstream: side(), plan: 'auto', signal });
  };

  beforeAll(async () => {
    await admin.query(BASE);
  });

  it.each([
    [
      'values of the usual types',
      {},
      { n: {}, due: {}, code: {}, amount: 'decimal', doc: {}, t: {}, wall: {} },
    ],
    ['whole numbers compared as decimals', {}, { n: 'decimal' }],
    ['rules that forgive', {}, { amount: { tolerance: '0.01' }, code: { trim: true, ignoreCase: true } }],
    ['windows cut by wall times of UTC', { time: 'local' }, { n: {} }],
    ['integers as keys', { key: { k: 'n' } }, {}],
  ])('takes raw for %s', async (_, config, rules) => {
    expect(await choose(config, rules)).toMatchObject({ name: 'raw' });
  });

  it.each([
    ['a value map', {}, { code: { map: { A: 'B' } } }, /code .*value map/],
    ['wall times of a zone, some of which happen twice', {}, { wall: { zone: 'Europe/Berlin' } }, /wall/],
    [
      'windows cut by such',
      { time: 'local', fields: ['local'] },
      { local: { zone: 'Europe/Berlin' } },
      /Europe\/Berlin/,
    ],
    ['text that is read as a number, and may be none', {}, { code: 'integer' }, /code/],
    ['dates read as instants', {}, { due: 'instant' }, /due/],
    ['numbers as keys, whose scale is no part of them', { key: { k: 'amount' } }, {}, /key part k/],
  ])('does not for %s', async (_, config, rules, words) => {
    const plan = await choose(config, rules);
    expect(plan).toMatchObject({ name: 'merge', why: expect.stringMatching(words) });
  });
});
