import { expect, it } from 'vitest';
import type { Catalogue, CatalogueColumn, CatalogueTable } from '../../../src/config/catalogue.ts';
import { proposePair } from '../../../src/config/propose.ts';

/** `name:type`, with `?` for nullable and `!` for generated after the name. */
function table(
  name: string,
  columns: string,
  keys: { primary?: string[]; unique?: string[][] } = {},
): CatalogueTable {
  return {
    schema: 'public',
    name,
    columns: columns.split(', ').map(column),
    primaryKey: keys.primary ?? [],
    uniqueKeys: keys.unique ?? [],
  };
}

function column(text: string): CatalogueColumn {
  const [name = '', native = ''] = text.split(':');
  return {
    name: name.replace(/[?!]/g, ''),
    native: native.replace('tz', 'timestamp with time zone'),
    nullable: name.includes('?'),
    generated: name.includes('!'),
  };
}

const catalogue = (...tables: CatalogueTable[]): Catalogue => ({ tables });

const ORDERS = table(
  'orders',
  'id!:bigint, order_no:text, amount:numeric(12,2), state:text, created_at:tz, updated_at:tz',
  { primary: ['id'], unique: [['order_no']] },
);
const COPY = table(
  'order',
  'id!:bigint, orderNo:character varying(40), amount:bigint, state:text, updated_at:timestamp without time zone',
  { primary: ['id'], unique: [['orderNo']] },
);

it('prefers the unique text key over the serial number, and pairs names written differently', () => {
  expect(proposePair(catalogue(ORDERS), catalogue(COPY))).toEqual({
    name: 'orders',
    key: ['order_no'],
    source: {
      table: 'public.orders',
      key: { order_no: 'order_no' },
      time: 'updated_at',
      fields: { amount: 'amount', state: 'state' },
    },
    downstream: {
      table: 'public.order',
      key: { order_no: 'orderNo' },
      time: 'updated_at',
      fields: { amount: 'amount', state: 'state' },
    },
    compare: { amount: 'decimal', state: 'text' },
    warnings: ["The downstream's public.order.updated_at has no time zone; it is read as UTC."],
  });
});

it('warns when only a serial number is on both sides', () => {
  const one = table('t', 'id!:bigint, a:text, updated_at:tz', { primary: ['id'] });
  const proposed = proposePair(catalogue(one), catalogue(one));
  expect(proposed?.key).toEqual(['id']);
  expect(proposed?.warnings).toEqual([
    expect.stringMatching(/^The key id looks like a number that each database counts/),
  ]);
});

it('takes a key of several columns in its order', () => {
  const one = table('t', 'no:text, shop:text, v:integer, at:tz', { unique: [['shop', 'no']] });
  expect(proposePair(catalogue(one), catalogue(one))?.key).toEqual(['shop', 'no']);
});

it('chooses a time with a zone before one without, and a change before a creation', () => {
  const times = (columns: string) =>
    proposePair(
      catalogue(table('t', `no:text, ${columns}`, { unique: [['no']] })),
      catalogue(COPY, table('t', 'no:text')),
    )?.source.time;
  expect(times('created_at:tz, updated_at:timestamp without time zone')).toBe('created_at');
  expect(times('created_at:tz, finished_at:tz, updated_at:tz')).toBe('updated_at');
  expect(times('created_at:tz, finished_at:tz')).toBe('finished_at');
  expect(times('updated_at?:tz, created_at:tz')).toBe('created_at');
  expect(times('v:integer')).toBeNull();
});

it('chooses the tables whose names and columns fit, unless a person chose', () => {
  const others = table('payments', 'order_no:text, amount:numeric, state:text', { unique: [['order_no']] });
  expect(proposePair(catalogue(others, ORDERS), catalogue(others, COPY))?.source.table).toBe('public.orders');
  const wanted = { sourceTable: 'orders', downstreamTable: 'public.payments' };
  expect(proposePair(catalogue(others, ORDERS), catalogue(others, COPY), wanted)?.downstream.table).toBe(
    'public.payments',
  );
});

it('leaves out what does not compare and says so', () => {
  const one = table('t', 'no:text, v:integer, at:tz', { unique: [['no']] });
  const other = table('t', 'no:text, v:bytea, at:tz', { unique: [['no']] });
  const proposed = proposePair(catalogue(one), catalogue(other));
  expect(proposed?.compare).toEqual({});
  expect(proposed?.warnings).toEqual([
    'v is left out: integer and bytea do not compare.',
    'No other column is on both sides: only missing and extra records are found.',
  ]);
});

it('proposes nothing when no unique key is on both sides', () => {
  expect(
    proposePair(catalogue(ORDERS), catalogue(table('t', 'x:text', { unique: [['x']] }))),
  ).toBeUndefined();
  expect(proposePair(catalogue(), catalogue())).toBeUndefined();
});
