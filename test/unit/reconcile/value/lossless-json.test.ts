import { describe, expect, it } from 'vitest';
import { parsePointer, pointTo } from '../../../../src/reconcile/json-pointer.ts';
import { canonicalJson } from '../../../../src/reconcile/value/json.ts';
import { JsonSyntaxError, parseJson } from '../../../../src/reconcile/value/lossless-json.ts';

describe('the JSON reader', () => {
  it('reads every kind of value', () => {
    const text = '{"a":[true,false,null,-1.50e+2,"x\\n\\u00e9\\ud83d\\ude00\\/"],"b":{}}';
    expect(JSON.parse(canonicalJson(parseJson(text)))).toEqual(JSON.parse(text));
  });

  it('keeps the text of a number', () => {
    expect(parseJson(' 4.3319172962174079e299 ')).toEqual({ kind: 'number', text: '4.3319172962174079e299' });
  });

  it.each([
    '',
    '{',
    '[1,]',
    '{"a":1,}',
    '{a:1}',
    '01',
    '1.',
    '+1',
    'nul',
    '"a',
    '"\t"',
    '"\\x"',
    '"\\ud800"',
    '1 2',
    '{"a":1,"a":1}',
    'NaN',
  ])('refuses %j', (text) => {
    expect(() => parseJson(text)).toThrow(JsonSyntaxError);
  });

  it('refuses a document nested without end', () => {
    expect(() => parseJson('['.repeat(100_000))).toThrow(/nested/);
  });

  it('says where a document breaks off', () => {
    expect(() => parseJson('{"a":')).toThrow(/offset 5 of 5/);
  });
});

describe('a JSON pointer', () => {
  const document = parseJson('{"a/b":{"~":[10,20]},"":3,"x":{"0":"member"}}');

  it.each([
    ['/a~1b/~0/1', '20'],
    ['/', '3'],
    ['/x/0', '"member"'],
    ['', canonicalJson(document)],
  ])('finds %j', (pointer, text) => {
    const node = pointTo(document, parsePointer(pointer));
    expect(node && canonicalJson(node)).toBe(text);
  });

  it.each(['/nothing', '/a~1b/~0/2', '/a~1b/~0/01', '/a~1b/~0/-', '/x/0/deeper'])(
    'finds nothing at %j',
    (pointer) => {
      expect(pointTo(document, parsePointer(pointer))).toBeUndefined();
    },
  );

  it('refuses text that is no pointer', () => {
    expect(() => parsePointer('a')).toThrow(TypeError);
    expect(() => parsePointer('/~2')).toThrow(TypeError);
  });
});
