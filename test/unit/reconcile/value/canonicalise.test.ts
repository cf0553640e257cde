import { describe, expect, it } from 'vitest';
import type { ValueType } from '../../../../src/reconcile/record.ts';
import { canonicalise, typeOfJson } from '../../../../src/reconcile/value/canonicalise.ts';
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
    ['float', '-0', '0'],
    ['float', 'NaN', 'NaN'],
    ['boolean', 't', 'true'],
    ['boolean', '0', 'false'],
    ['boolean', 'FALSE', 'false'],
    ['uuid', '{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    ['bytes', '\\x00FF', '00ff'],
    ['date', '2024-02-29', '2024-02-29'],
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
    ['bytes', 'xyz'],
    ['json', '{"a":1,"a":2}'],
    ['instant', '2023-02-29 00:00:00+00'],
    ['instant', '2026-11-30 17:57:31'],
    ['instant', 'yesterday'],
  ] as const)('calls %s %j undecided', (type, raw) => {
    expect(canonicalise(raw, type).type).toBe('undecided');
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
