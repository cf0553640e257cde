import type { FrameBuffer, RawFormat } from '../raw/frame-buffer.ts';
import type { RawColumn, RawKeyColumn, RawLayout } from '../raw/layout.ts';
import type { SideRecord } from '../record.ts';
import type { RawStream } from '../side.ts';
import type { Places, SideContext } from './mapping.ts';
import type { Shape } from './postgres.ts';
import { cellReader, isBinaryReadable, type ReadCells } from './postgres-cells.ts';
import { type Column, OID } from './postgres-columns.ts';
import type { KeyColumn } from './postgres-key.ts';
import type { RecordReader } from './postgres-record.ts';
import type { SnapshotCopy } from './postgres-session.ts';
import { quoteIdentifier, type Relation, select } from './postgres-sql.ts';

/** What a raw copy of a side holds: the key, then every compared field. */
export interface RawColumns {
  readonly layout: RawLayout;
  /** SELECT items, in the order of the layout. */
  readonly items: readonly string[];
  readonly order: readonly string[];
  /** Name of the column behind each item. */
  readonly names: readonly string[];
}

interface Item {
  readonly text: string;
  readonly order: string;
  readonly raw: RawKeyColumn;
}

/** The columns of a raw copy, or a sentence about what stands in the way. */
export function rawColumnsOf(shape: Shape, places: Places, context: SideContext): RawColumns | string {
  const { time, columns } = shape;
  if (time !== null && isWallTime(time.column) && time.zone !== 'UTC') {
    return `windows are cut by ${time.column.name}, a wall time of ${time.zone}`;
  }
  const keys: Item[] = [];
  for (const [i, key] of shape.keys.entries()) {
    const name = context.keyNames[i] ?? key.column.name;
    const item = isReadAsItIs(key.column, context.rules[name]) ? keyItem(name, key) : undefined;
    if (item === undefined || key.type !== key.column.type) {
      return `the order of key part ${name} (${key.column.native}) cannot be told from its bytes`;
    }
    keys.push(item);
  }
  const mapped = new Map(places.fields);
  const fields: Column[] = [];
  const layout: RawColumn[] = [];
  for (const name of comparedNames(context)) {
    const column = columns.byName.get(mapped.get(name) ?? '');
    const rule = context.rules[name];
    if (column === undefined) return `the compared field ${name} is not mapped`;
    if (rule?.map !== undefined) return `equal bytes of ${name} may differ in meaning, as it has a value map`;
    if (!isReadAsItIs(column, rule)) return `${name} (${column.native}) is read as something else than it is`;
    fields.push(column);
    layout.push(rawColumn(name, column));
  }
  return {
    layout: { keys: keys.map((item) => item.raw), fields: layout },
    items: [...keys.map((item) => item.text), ...fields.map((column) => quoteIdentifier(column.name))],
    order: keys.map((item) => item.order),
    names: [...shape.keys.map((key) => key.column.name), ...fields.map((column) => column.name)],
  };
}

function comparedNames({ rules }: SideContext): readonly string[] {
  return Object.keys(rules)
    .filter((name) => rules[name]?.ignore !== true)
    .sort();
}

function isWallTime(column: Column): boolean {
  return column.oid === OID.timestamp || column.oid === OID.date;
}

/**
 * True when every value of the column can be read, and equal bytes are equal values. A wall time of a zone may be one
 * that the zone had twice; text that should be a number may be none.
 */
function isReadAsItIs(column: Column, rule: SideContext['rules'][string] | undefined): boolean {
  if (isWallTime(column) && (rule?.zone ?? 'UTC') !== 'UTC') return false;
  const type = rule?.type ?? column.type;
  return type === column.type || (type === 'decimal' && column.type === 'integer');
}

function rawColumn(name: string, column: Column): RawColumn {
  const { native, oid, type } = column;
  return { name, native, oid, type, binary: isBinaryReadable(oid), padded: oid === OID.bpchar };
}

function keyItem(name: string, { column, order }: KeyColumn): Item | undefined {
  const text = quoteIdentifier(column.name);
  const raw = rawColumn(name, column);
  switch (column.oid) {
    case OID.text:
    case OID.varchar:
      return { text, order, raw: { ...raw, kind: 'text' } };
    case OID.int2:
    case OID.int4:
    case OID.int8:
      // Sorted as numbers, which their bytes show too, so that an index on the column helps.
      return { text, order: text, raw: { ...raw, kind: 'integer' } };
    case OID.uuid:
      return { text, order: text, raw: { ...raw, kind: 'uuid' } };
    case OID.date:
    case OID.timestamp:
    case OID.timestamptz:
      return { text, order: text, raw: { ...raw, kind: 'time' } };
    default:
      return column.type === 'text' ? asText(text, order, raw) : undefined;
  }
}

/** Enumerations, padded characters and whatever else is read as text is also copied and sorted as text. */
function asText(quoted: string, order: string, raw: RawColumn): Item {
  const text = { ...raw, oid: OID.text, binary: true, padded: false, kind: 'text' } as const;
  return { text: `${quoted}::text`, order, raw: text };
}

/** The statement for a window. COPY takes no parameters: the condition holds its values as literals. */
export function copyStatement(
  relation: Relation,
  columns: RawColumns,
  condition: string,
  format: RawFormat,
): string {
  const rows = select(relation, columns.items, [condition], `order by ${columns.order.join(', ')}`);
  return `copy (${rows}\n) to stdout (format ${format})`;
}

/** A copy of a side's window that runs, and how its rows are read. */
export class PostgresRawStream implements RawStream {
  readonly frames: FrameBuffer;
  readonly whole: boolean;
  readonly #copy: SnapshotCopy;
  readonly #cells: ReadCells;
  readonly #reader: RecordReader;
  /** Where each column of the reader stands in a row of the copy. */
  readonly #places: readonly number[];

  constructor(copy: SnapshotCopy, columns: RawColumns, reader: RecordReader, format: RawFormat) {
    this.frames = copy.frames;
    this.#copy = copy;
    const { keys, fields } = columns.layout;
    this.#cells = cellReader(
      format,
      [...keys, ...fields].map((column) => column.oid),
    );
    this.#reader = reader;
    this.#places = reader.columns.map((name) => columns.names.indexOf(name));
    this.whole = !this.#places.includes(-1);
  }

  more(): Promise<void> {
    return this.#copy.more();
  }

  flow(): void {
    this.#copy.flow();
  }

  read(payload: Buffer): SideRecord {
    const cells = this.#cells(payload);
    return this.#reader.read(this.#places.map((place) => cells[place] ?? null));
  }

  close(): Promise<void> {
    return this.#copy.close();
  }

  discard(): void {
    this.#copy.discard();
  }
}
