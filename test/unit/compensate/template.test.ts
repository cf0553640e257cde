import { describe, expect, it } from 'vitest';
import {
  fillHeaders,
  fillJson,
  fillOptional,
  fillPath,
  fillQuery,
  fillText,
  recordPlaceholders,
  TemplateError,
} from '../../../src/compensate/template.ts';
import type { Finding } from '../../../src/reconcile/record.ts';

const known = new Map<string, string | null>([
  ['key', 'A/1'],
  ['source.amount', '12345678901234567890.10'],
  ['source.note', null],
  ['source.name', 'Zoë "Q" & co'],
  ['source.empty', ''],
  ['source.dots', '..'],
  ['source.line', 'a\r\nX-Evil: 1'],
]);

describe('templates', () => {
  it('fill texts, and leave other braces alone', () => {
    expect(fillText('order {key}: {source.amount}', known)).toBe('order A/1: 12345678901234567890.10');
    expect(fillText('{} {"a":1} {', known)).toBe('{} {"a":1} {');
  });

  it('name an unknown placeholder and list the known ones', () => {
    for (const wrong of ['{source.amont}', '{ key }', '{source.amount|integer}', '{constructor}']) {
      expect(() => fillText(wrong, known), wrong).toThrow(TemplateError);
    }
    try {
      fillText('{source.amont}', known);
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ code: 'TRU_TEMPLATE', message: '{source.amont} is not known here' });
      expect((error as TemplateError).hint).toContain('{source.amount}');
    }
  });

  it('refuse null inside a text, and hand it through as the whole', () => {
    expect(() => fillText('note: {source.note}', known)).toThrow(/null has no text/);
    expect(fillOptional('{source.note}', known)).toBeNull();
  });

  it('percent-encode paths and queries', () => {
    expect(fillPath('/orders/{key}/pay', known)).toBe('/orders/A%2F1/pay');
    expect(fillQuery({ name: '{source.name}', note: '{source.note}', 'a b': 'x' }, known)).toBe(
      'name=Zo%C3%AB%20%22Q%22%20%26%20co&a%20b=x',
    );
  });

  it('refuse values that would send the call to another address', () => {
    expect(() => fillPath('/orders/{source.empty}', known)).toThrow(/is empty/);
    expect(() => fillPath('/orders/{source.dots}/x', known)).toThrow(/another address/);
    expect(() => fillPath('/orders/{source.note}', known)).toThrow(/null/);
  });

  it('leave out a header that is null, and refuse one that would start another', () => {
    expect(fillHeaders({ 'x-key': '{key}', 'x-note': '{source.note}' }, known)).toEqual({ 'x-key': 'A/1' });
    expect(() => fillHeaders({ 'x-line': '{source.line}' }, known)).toThrow(/control character/);
  });

  it('fill JSON deep down, with exact numbers where asked', () => {
    const body = {
      id: '{key}',
      amount: '{source.amount|number}',
      text: '{source.amount}',
      note: '{source.note}',
      maybe: '{source.note|number}',
      list: [1.5, true, null, { '{key}': 'for {source.name}' }],
    };
    expect(fillJson(body, known)).toBe(
      '{"id":"A/1","amount":12345678901234567890.10,"text":"12345678901234567890.10","note":null,"maybe":null,' +
        '"list":[1.5,true,null,{"A/1":"for Zoë \\"Q\\" & co"}]}',
    );
  });

  it('refuse |number for what is no number, and inside a text', () => {
    expect(() => fillJson('{key|number}', known)).toThrow(/no JSON number/);
    expect(() => fillJson('{source.empty|number}', known)).toThrow(/no JSON number/);
    expect(() => fillJson('EUR {source.amount|number}', known)).toThrow(/whole JSON value/);
  });

  it('know the record’s key parts and fields, and nothing that could not be read', () => {
    const finding: Finding = {
      key: ['7', 'B'],
      kind: 'missing',
      fields: [],
      source: {
        key: ['7', 'B'],
        time: null,
        fields: {
          ok: { type: 'text', text: 't' },
          nothing: { type: 'null' },
          odd: { type: 'undecided', text: '02:30', reason: 'ambiguous' },
        },
      },
      downstream: null,
      sourceCount: 1,
      downstreamCount: 0,
      sourceDigest: null,
      downstreamDigest: null,
    };
    expect([...recordPlaceholders(finding, ['shop', 'no'])]).toEqual([
      ['key.shop', '7'],
      ['key.no', 'B'],
      ['source.ok', 't'],
      ['source.nothing', null],
    ]);
    expect(recordPlaceholders({ ...finding, key: ['7'] }, ['shop']).get('key')).toBe('7');
  });
});
