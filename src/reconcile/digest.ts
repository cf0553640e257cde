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
  const hmac = createHmac('sha256', key).update('record');
  for (const field of fields) {
    const value: Value = record.fields[field] ?? { type: 'null' };
    hmac.update(frame(field)).update(frame(value.type));
    if (value.type !== 'null') hmac.update(frame(value.text));
  }
  return hmac.digest();
}

function frame(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
