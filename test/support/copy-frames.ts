/** Messages of the PostgreSQL protocol as a server sends them for a COPY, to be cut anywhere. */

export function message(type: string, payload: Buffer | string = ''): Buffer {
  const body = Buffer.from(payload);
  const head = Buffer.alloc(5);
  head.write(type, 'latin1');
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

/** `\x` and so on is what the text format writes; numbers become int4 in the binary one. */
export type Cell = string | number | null;

export function binaryPayload(cells: readonly Cell[]): Buffer {
  const parts = [uint16(cells.length)];
  for (const cell of cells) {
    const value = cell === null ? null : typeof cell === 'number' ? int32(cell) : Buffer.from(cell);
    parts.push(int32(value === null ? -1 : value.length), value ?? Buffer.alloc(0));
  }
  return Buffer.concat(parts);
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
};

export function textPayload(cells: readonly Cell[]): Buffer {
  const texts = cells.map((cell) =>
    cell === null ? '\\N' : String(cell).replace(/[\b\f\n\r\t\v\\]/g, (each) => ESCAPES[each] ?? each),
  );
  return Buffer.from(`${texts.join('\t')}\n`);
}

const HEADER = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]);

/** All messages of a copy with these rows, header and trailer as the server places them. */
export function copyMessages(format: 'binary' | 'text', payloads: readonly Buffer[]): Buffer[] {
  const begin = [message('1'), message('2'), message('H', Buffer.from([format === 'binary' ? 1 : 0, 0, 0]))];
  const end = [message('c'), message('C', 'COPY 0\0'), message('Z', 'T')];
  if (format === 'text') return [...begin, ...payloads.map((payload) => message('d', payload)), ...end];
  const rows = [...payloads, Buffer.from([0xff, 0xff])];
  const data = rows.map((payload, i) => message('d', i === 0 ? Buffer.concat([HEADER, payload]) : payload));
  return [...begin, ...data, ...end];
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
