import { createHmac } from 'node:crypto';
import type { SideRecord, Value } from './record.ts';

/**
 * A keyed digest (HMAC-SHA256, hex) of the named fields of all records that one side holds for a key; `null` when it
 * holds none. Keyed, because stored digests of small values (an amount, a state) could be guessed back otherwise.
 * The order of the records does not matter, their number does. Every part carries its length, so that no shifting
 * of text between fields gives the same bytes.
 */
export function digestRecords(
  records: readonly SideRecord[],
  comparedFields: readonly string[],
  key: string,
): string | null {
  const fields = [...comparedFields].sort();
  const digests = records.map((record) => digestRecord(record, fields, key)).sort(Buffer.compare);
  if (digests.length === 0) return null;
  return createHmac('sha256', key).update('records').update(Buffer.concat(digests)).digest('hex');
}

function digestRecord(record: SideRecord, fields: readonly string[], key: string): Buffer {
  return createHmac('sha256', key).update('record').update(encodeRecord(record, fields)).digest();
}

/**
 * The named fields of a record as bytes: for each its name, its type and its text, each after its length. Null has a
 * type and no text. Records that differ in a named field never share these bytes.
 */
export function encodeRecord(record: SideRecord, fields: readonly string[]): Buffer {
  const parts = fields.flatMap((field) => {
    const value: Value = record.fields[field] ?? { type: 'null' };
    if (value.type === 'null') return [frame(field), frame('null')];
    return [frame(field), frame(tagOf(value)), frame(value.text)];
  });
  return Buffer.concat(parts);
}

/** The scale is part of a value where a rule compares it. */
function tagOf(value: Exclude<Value, { readonly type: 'null' }>): string {
  return value.type !== 'undecided' && value.scale !== undefined
    ? `${value.type} of scale ${value.scale}`
    : value.type;
}

function frame(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
