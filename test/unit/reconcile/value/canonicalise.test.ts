import { describe, expect, it } from 'vitest';
import { ruleSchema } from '../../../../src/config/schema.ts';
import type { ValueType } from '../../../../src/reconcile/record.ts';
import { canonicalise, readingBy, typeOfJson } from '../../../../src/reconcile/value/canonicalise.ts';
import { parseJson } from '../../../../src/reconcile/value/lossless-json.ts';

const textOf = (raw: string, type: ValueType, zone?: string) => {
  const value = canonicalise(raw, type, { zone });
  return value.type === 'undecided'
    ? `undecided: ${value.reason}`
    : value.type === 'null'
      ? null
      : value.text;
};

describe('canonical values', () => {
  it.each([
    ['decimal', '1.10', '1.1'],
    ['decimal', '.71', '0.71'],
    ['decimal', '5.', '5'],
    ['decimal', '-0.00', '0'],
    ['decimal', '+1e3', '1000'],
    ['decimal', '1.5E-3', '0.0015'],
    ['decimal', '12345678901234567.89', '12345678901234567.89'],
    ['decimal', '100', '100'],
    ['decimal', '1e999999999', '1e999999999'],
    ['decimal', 'NaN', 'NaN'],
    ['decimal', '-infinity', '-Infinity'],
    ['integer', '9007199254740993', '9007199254740993'],
    ['integer', '18446744073709551615', '18446744073709551615'],
    ['integer', '-0', '0'],
    ['integer', '007', '7'],
    ['integer', '5.00', '5'],
    ['float', '0.1', '0.1'],
    ['float', '1e+20', '100000000000000000000'],
    ['float', '-0', '-0'],
    ['float', '-0.00', '-0'],
    ['float', '1e-300', '1e-300'],
    ['float', 'NaN', 'NaN'],
    ['boolean', 't', 'true'],
    ['boolean', '0', 'false'],
    ['boolean', 'FALSE', 'false'],
    ['uuid', '{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    ['bytes', '\\x00FF', '00ff'],
    ['date', '2024-02-29', '2024-02-29'],
    ['date', '0001-01-01', '0001-01-01'],
    ['date', '9999-12-31', '9999-12-31'],
    ['date', '1582-10-14', '1582-10-14'],
    ['date', '12024-02-29', '12024-02-29'],
    ['date', '0045-02-28 BC', '0045-02-28 BC'],
    ['date', '-infinity', '-infinity'],
    ['time', '17:57', '17:57:00.000000'],
    ['time', '17:57:31.12', '17:57:31.120000'],
    ['time', '24:00:00', '24:00:00.000000'],
    ['array', '{}', '[]'],
    ['array', '{1,2}', '["1","2"]'],
    ['array', '{a b, "c,d" ,NULL,"NULL","","\\"\\\\"}', '["a b","c,d",null,"NULL","","\\"\\\\"]'],
    ['array', '{{1,2},{3,null}}', '[["1","2"],["3",null]]'],
    ['array', '[1, 2.0, "x", null, [true]]', '["1","2","x",null,["true"]]'],
    ['set', '{b,a}', '["b","a"]'],
    ['text', ' NULL ', ' NULL '],
    ['json', '{"b":1.50,"a":[1e2,null]}', '{"a":[100,null],"b":1.5}'],
    ['instant', '2026-11-30 17:57:31.12+00', '2026-11-30T17:57:31.120000Z'],
    ['instant', '2026-11-30T18:57:31+01:00', '2026-11-30T17:57:31.000000Z'],
    ['instant', '2024-02-29 00:00:00+00', '2024-02-29T00:00:00.000000Z'],
    ['instant', 'infinity', 'infinity'],
  ] as const)('reads %s %j as %j', (type, raw, text) => {
    expect(textOf(raw, type)).toBe(text);
  });

  it.each([
    ['integer', '1.5'],
    ['integer', ''],
    ['decimal', '1,560.00'],
    ['decimal', '.'],
    ['boolean', 'yes'],
    ['uuid', 'a0eebc99'],
    ['date', '2023-02-29'],
    ['date', '0000-01-01'],
    ['date', '2026-11-30 10:00:00'],
    ['float', '1e400'],
    ['float', '1e-400'],
    ['time', '24:00:01'],
    ['time', '-10:00:00'],
    ['time', '838:59:59'],
    ['time', '10:00:00+02'],
    ['array', '1,2'],
    ['array', '{1,2'],
    ['array', '{1,,2}'],
    ['array', '{1}x'],
    ['array', '{a"b"}'],
    ['array', '[0:1]={1,2}'],
    ['array', '{"a":1}'],
    ['bytes', 'xyz'],
    ['json', '{"a":1,"a":2}'],
    ['instant', '2023-02-29 00:00:00+00'],
    ['instant', '2026-11-30 17:57:31'],
    ['instant', 'yesterday'],
  ] as const)('calls %s %j undecided', (type, raw) => {
    expect(canonicalise(raw, type).type).toBe('undecided');
  });

  it.each([
    ['1,234.56', '1,560.00', '1560'],
    ['1,234.56', '1560', '1560'],
    ['1,234.56', '¥1,560.00', '1560'],
    ['1,234.56', '-$ 1,234,567.89', '-1234567.89'],
    ['1,234.56', '$-1.50', '-1.5'],
    ['1.234,56', '1.560,00', '1560'],
    ['1.234,56', '€ 1.560', '1560'],
    ['1 234,56', '1\u00a0560,5', '1560.5'],
    ["1'234.56", "1'560.5", '1560.5'],
  ] as const)('reads numbers written as %s: %s is %s', (format, raw, text) => {
    expect(canonicalise(raw, 'decimal', { format })).toEqual({ type: 'decimal', text });
  });

  it.each([
    ['1,234.56', '1.560,00'],
    ['1,234.56', '1,56'],
    ['1,234.56', '1,5600'],
    ['1,234.56', '-$-1'],
    ['1,234.56', 'USD 1'],
    ['1,234.56', '$'],
    ['1.234,56', '1560.00'],
    ['1.234,56', '1.56'],
  ] as const)('reads no number written as %s in %s', (format, raw) => {
    expect(canonicalise(raw, 'decimal', { format })).toMatchObject({
      reason: `cannot be read as decimal written as ${format}`,
    });
  });

  it('reads a declared form only where the side writes texts', () => {
    const rule = ruleSchema.parse({ type: 'decimal', format: '1.234,56' });
    expect(canonicalise('1.560', 'decimal', readingBy(rule, 'text'))).toMatchObject({ text: '1560' });
    expect(canonicalise('1.560', 'decimal', readingBy(rule, 'decimal'))).toMatchObject({ text: '1.56' });
    expect(canonicalise(parseJson('1.560'), 'decimal', readingBy(rule))).toMatchObject({ text: '1.56' });
    expect(canonicalise(parseJson('"1.560"'), 'decimal', readingBy(rule))).toMatchObject({ text: '1560' });
  });

  it.each([
    ['base64', 'AP8=', '00ff'],
    ['base64', 'AP8A\n/wD/', '00ff00ff00ff'],
    ['base64', '\\x00ff', '00ff'],
    ['base64', '0xAB', 'd31001'],
    ['escape', 'a\\\\b\\000\\377', '615c6200ff'],
    ['escape', '\\x00ff', '00ff'],
    ['hex', '0x00FF', '00ff'],
    ['hex', '00ff', '00ff'],
  ] as const)('reads bytes written in %s: %j', (encoding, raw, hex) => {
    expect(canonicalise(raw, 'bytes', { encoding })).toEqual({ type: 'bytes', text: hex });
  });

  it.each([
    ['base64', 'AP8'],
    ['base64', 'AP9='],
    ['base64', 'A*8='],
    ['escape', 'a\\b'],
    ['escape', 'ä'],
    ['escape', '\\400'],
    ['hex', '0'],
  ] as const)('reads no bytes written in %s from %j', (encoding, raw) => {
    expect(canonicalise(raw, 'bytes', { encoding }).type).toBe('undecided');
  });

  it('gives elements the type that is declared', () => {
    expect(canonicalise('{1.0,2}', 'array', { of: 'integer' })).toEqual({ type: 'array', text: '["1","2"]' });
    expect(canonicalise('{x}', 'array', { of: 'integer' })).toMatchObject({
      reason: 'an element cannot be read as integer',
    });
    expect(canonicalise(parseJson('[{"b":1,"a":2}]'), 'array', { of: 'json' })).toMatchObject({
      text: JSON.stringify(['{"a":2,"b":1}']),
    });
  });

  it('keeps the scale only where a rule compares it', () => {
    expect(canonicalise('1.10', 'decimal', { keepScale: true })).toEqual({
      type: 'decimal',
      text: '1.1',
      scale: 2,
    });
    expect(canonicalise('1.10', 'decimal')).toEqual({ type: 'decimal', text: '1.1' });
  });

  it('takes the date of a moment only in a zone', () => {
    expect(textOf('2026-11-30 23:30:00+00', 'date', 'Asia/Shanghai')).toBe('2026-12-01');
    expect(textOf('2026-11-30 23:30:00', 'date', 'Asia/Shanghai')).toBe('2026-11-30');
    expect(textOf('2026-11-30 23:30:00+00', 'date')).toMatch(/zone/);
  });

  it('says which member of an object stands twice', () => {
    expect(textOf('{"a":1,"a":2}', 'json')).toMatch(/"a" stands twice/);
  });

  it('places a local time in its zone, to the microsecond', () => {
    expect(textOf('2026-07-01 12:00:00.242999', 'instant', 'America/New_York')).toBe(
      '2026-07-01T16:00:00.242999Z',
    );
  });

  it('calls a local time that the zone had twice undecided', () => {
    expect(textOf('2024-11-03 01:30:00', 'instant', 'America/New_York')).toMatch(/twice/);
  });

  it('calls a local time that the zone skipped undecided', () => {
    expect(textOf('2024-03-10 02:30:00', 'instant', 'America/New_York')).toMatch(/skipped/);
  });

  it('keeps null apart from the empty text', () => {
    expect(canonicalise(null, 'text')).toEqual({ type: 'null' });
    expect(canonicalise('', 'text')).toEqual({ type: 'text', text: '' });
  });

  it('keeps a JSON number exact and names its own type', () => {
    const big = parseJson('9007199254740993');
    expect(canonicalise(big, typeOfJson(big))).toEqual({ type: 'integer', text: '9007199254740993' });
    expect(typeOfJson(parseJson('1.5'))).toBe('decimal');
    expect(typeOfJson(parseJson('"1.5"'))).toBe('text');
  });

  it('does not take a JSON object for a number', () => {
    expect(canonicalise(parseJson('{"a":1}'), 'decimal')).toMatchObject({ type: 'undecided' });
  });
});
