import { describe, expect, it } from 'vitest';
import { load, pair, problemsOf } from './in-file.ts';

/** What is wrong with these rules of a pair that has the fields amount and status, as `path: message`. */
async function wrong(compare: string): Promise<string[]> {
  const text = pair('').replace('{ amount: decimal, status: text }', compare);
  return (await problemsOf(text)).map(({ path, message }) =>
    `${path}: ${message}`.replace('reconciliations.orders.compare.', ''),
  );
}

describe('the options of a rule', () => {
  it.each([
    ['text', 'tolerance: "1"', 'tolerance'],
    ['text', 'tolerance: { USD: "1" }, currency: USD', 'tolerance'],
    ['decimal', 'zone: UTC', 'zone'],
    ['decimal', 'trim: true', 'trim'],
    ['decimal', 'padded: true', 'padded'],
    ['decimal', 'ignoreCase: true', 'ignoreCase'],
    ['decimal', 'unicode: NFC', 'unicode'],
    ['decimal', 'emptyIsNull: true', 'emptyIsNull'],
    ['decimal', 'precision: second', 'precision'],
    ['decimal', 'within: 1s', 'within'],
    ['decimal', 'numbers: float', 'numbers'],
    ['decimal', 'encoding: base64', 'encoding'],
    ['decimal', 'of: integer', 'of'],
    ['array', 'repeats: ignore', 'repeats'],
    ['integer', 'scale: compare', 'scale'],
    ['integer', 'infiniteIsNull: true', 'infiniteIsNull'],
    ['float', 'minorUnits: source, currency: USD', 'minorUnits'],
    ['date', 'precision: second', 'precision'],
    ['date', 'format: "1,234.56"', 'format'],
    ['date', 'precision: second, rounding: floor', 'rounding'],
  ])('of a field of type %s are not { %s }', async (type, options, option) => {
    expect(await wrong(`{ amount: { type: ${type}, ${options} } }`)).toContain(
      `amount.${option}: says nothing about a field of type ${type}`,
    );
  });

  it.each([
    '{ type: decimal, tolerance: "0.1%" }',
    '{ type: float, tolerance: "0.1" }',
    '{ tolerance: { USD: "0.01", JPY: "1%" }, currency: { field: status } }',
    '{ type: decimal, minorUnits: downstream, currency: KWD, rounding: half-even }',
    '{ type: decimal, format: "1.234,56", infiniteIsNull: true }',
    '{ type: instant, precision: second, rounding: half-up, within: 1s, zone: Europe/Berlin }',
    '{ type: time, precision: second }',
    '{ type: date, zone: Asia/Shanghai, within: 1d }',
    '{ type: bytes, encoding: base64, padded: true }',
    '{ type: set, of: integer, repeats: ignore }',
    '{ type: json, numbers: float }',
    '{ trim: true, map: { a: b } }',
  ])('may be %s', async (rule) => {
    await load(pair('').replace('{ amount: decimal, status: text }', `{ amount: ${rule} }`));
  });

  it.each([
    ['{ tolerance: 0.01 }', 'amount.tolerance'],
    ['{ tolerance: "-1" }', 'amount.tolerance'],
    ['{ tolerance: { usd: "1" }, currency: USD }', 'amount.tolerance'],
    ['{ minorUnits: USD }', 'amount.minorUnits'],
    ['{ format: "1.234.56" }', 'amount.format'],
    ['{ rounding: up }', 'amount.rounding'],
  ])('are refused when they are not read: %s', async (rule, path) => {
    const problems = await wrong(`{ amount: ${rule} }`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${path}`));
  });

  it('have to say enough, and not contradict each other', async () => {
    expect(
      await wrong(`{
        amount: { type: decimal, minorUnits: source },
        status: { type: decimal, tolerance: { USD: "1" } }
      }`),
    ).toEqual(['amount.minorUnits: needs a currency', 'status.tolerance: needs a currency']);
    expect(
      await wrong(`{
        amount: { type: decimal, currency: USD },
        status: { type: decimal, rounding: floor }
      }`),
    ).toEqual(['amount.currency: changes nothing', 'status.rounding: does not say what to round to']);
    expect(
      await wrong(`{
        amount: { type: decimal, minorUnits: source, currency: XAU },
        status: { type: decimal, minorUnits: source, currency: { field: currncy } }
      }`),
    ).toEqual([
      'amount.currency: "XAU" has no minor unit in ISO 4217',
      'status.currency.field: "currncy" is no field of either side',
    ]);
    expect(await wrong('{ amount: { type: decimal, scale: compare, tolerance: "1" } }')).toEqual([
      'amount.scale: contradicts tolerance, which compares what the numbers are worth',
    ]);
  });
});

describe('the rule of a part of the key', () => {
  it('folds texts, and does nothing else', async () => {
    await load(
      pair('').replace('{ amount: decimal,', '{ order_no: { trim: true, ignoreCase: true, padded: true },'),
    );
    expect(
      await wrong('{ order_no: { unicode: NFC, emptyIsNull: true, map: { a: b } }, amount: decimal }'),
    ).toEqual([
      'order_no.unicode: says nothing about a part of the key',
      'order_no.emptyIsNull: says nothing about a part of the key',
      'order_no.map: says nothing about a part of the key',
    ]);
  });

  it('cannot fold what an API is asked for', async () => {
    const text = `version: 1
targets: { partner: { url: "http://127.0.0.1:1" } }
reconciliations:
  orders:
    source: { type: postgres, url: 'postgres://h/a', table: t, time: at, fields: [amount] }
    downstream:
      type: http
      target: partner
      lookup: { path: "/{key}" }
      key: { order_no: /order_no }
      fields: { amount: /amount }
    key: [order_no]
    compare: { order_no: { trim: true }, amount: decimal }
`;
    expect((await problemsOf(text)).map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'reconciliations.orders.compare.order_no.trim: cannot be kept by the downstream',
    ]);
  });
});
