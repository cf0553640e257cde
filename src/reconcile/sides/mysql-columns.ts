import type { FieldPacket } from 'mysql2';
import type { ValueType } from '../record.ts';
import type { Snapshot } from './mysql-session.ts';
import { quoteIdentifier, textLiteral } from './mysql-sql.ts';
import { type Relation, select } from './relation.ts';

/** How the server keeps a column. */
export type Kind =
  | 'integer'
  | 'bit'
  | 'year'
  | 'decimal'
  | 'float'
  | 'double'
  | 'date'
  | 'datetime'
  | 'timestamp'
  | 'time'
  | 'text'
  | 'enum'
  | 'address'
  | 'uuid'
  | 'json'
  | 'bytes';

export interface Column {
  readonly name: string;
  readonly kind: Kind;
  readonly type: ValueType;
  /** As the catalogue writes it: `decimal(20,2)`; the kind where it is an expression. */
  readonly native: string;
  readonly unsigned: boolean;
  /** Character set and collation of text; null elsewhere. */
  readonly text: { readonly charset: string; readonly collation: string } | null;
  /** Table and column behind it, null when it is an expression. */
  readonly origin: Origin | null;
}

export interface Origin {
  readonly schema: string;
  readonly table: string;
  readonly column: string;
}

/** Types of the protocol. */
const KINDS: ReadonlyMap<number, Kind> = new Map<number, Kind>([
  [0, 'decimal'],
  [246, 'decimal'],
  [1, 'integer'],
  [2, 'integer'],
  [3, 'integer'],
  [8, 'integer'],
  [9, 'integer'],
  [13, 'year'],
  [16, 'bit'],
  [4, 'float'],
  [5, 'double'],
  [7, 'timestamp'],
  [17, 'timestamp'],
  [12, 'datetime'],
  [18, 'datetime'],
  [10, 'date'],
  [14, 'date'],
  [11, 'time'],
  [19, 'time'],
  [245, 'json'],
  [247, 'enum'],
  [248, 'enum'],
]);
const GEOMETRY = 255;

const TYPES: Readonly<Record<Kind, ValueType>> = {
  integer: 'integer',
  bit: 'integer',
  year: 'integer',
  decimal: 'decimal',
  float: 'float',
  double: 'float',
  date: 'date',
  datetime: 'instant',
  timestamp: 'instant',
  time: 'text',
  text: 'text',
  enum: 'text',
  address: 'text',
  uuid: 'uuid',
  json: 'json',
  bytes: 'bytes',
};

const BINARY_CHARSET = 63;
const FLAG = { unsigned: 32, enum: 256, set: 2048 } as const;

/** Asks the server what the columns are. They are never guessed from their values. */
export async function readColumns(
  snapshot: Snapshot,
  relation: Relation,
  names: readonly string[],
): Promise<ReadonlyMap<string, Column>> {
  const unique = [...new Set(names)];
  const plain = { from: relation.from, where: undefined };
  const { fields } = await snapshot.query(select(plain, unique.map(quoteIdentifier), [], 'limit 0'));
  const natives = await readNatives(snapshot, fields.map(originOf));
  const collations = await readCollations(snapshot, relation, unique);
  return new Map(
    unique.map((name, place): [string, Column] => {
      const field = fields[place];
      if (field === undefined) throw new TypeError(`the server did not describe ${name}`);
      const kind = kindOf(field);
      const column = {
        name,
        kind,
        type: TYPES[kind],
        native: natives[place] ?? kind,
        unsigned: (Number(field.flags) & FLAG.unsigned) !== 0,
        text: kind === 'text' || kind === 'enum' ? (collations[place] ?? null) : null,
        origin: originOf(field),
      };
      return [name, column];
    }),
  );
}

function kindOf(field: FieldPacket): Kind {
  if (field.extendedFormat === 'json') return 'json';
  if (field.extendedTypeName === 'uuid') return 'uuid';
  if (field.extendedTypeName?.startsWith('inet') === true) return 'address';
  const kind = KINDS.get(field.columnType ?? -1);
  if (kind !== undefined) return kind;
  if ((Number(field.flags) & (FLAG.enum | FLAG.set)) !== 0) return 'enum';
  return field.columnType === GEOMETRY || field.characterSet === BINARY_CHARSET ? 'bytes' : 'text';
}

function originOf(field: FieldPacket): Origin | null {
  const schema = field.schema ?? field.db ?? '';
  if (schema === '' || field.orgTable === '' || field.orgName === '') return null;
  return { schema, table: field.orgTable, column: field.orgName };
}

/** The types as the catalogue writes them, in the order of the columns. */
async function readNatives(
  snapshot: Snapshot,
  origins: readonly (Origin | null)[],
): Promise<readonly (string | undefined)[]> {
  const asked = origins.flatMap((origin) => (origin === null ? [] : [origin]));
  if (asked.length === 0) return [];
  const one = ({ schema, table, column }: Origin) =>
    `(table_schema = ${textLiteral(schema)} and table_name = ${textLiteral(table)} and column_name = ${textLiteral(column)})`;
  const { rows } = await snapshot.query(
    `select table_schema, table_name, column_name, column_type from information_schema.columns where ${asked.map(one).join(' or ')}`,
  );
  const found = new Map(
    rows.map((row) => {
      const [schema = '', table = '', column = '', native = ''] = row.map((cell) => cell?.toString());
      return [idOf({ schema, table, column }), native];
    }),
  );
  return origins.map((origin) => (origin === null ? undefined : found.get(idOf(origin))));
}

function idOf({ schema, table, column }: Origin): string {
  return JSON.stringify([schema, table, column].map((name) => name.toLowerCase()));
}

/** The join never holds, so no record is read; what is left of the relation are its columns' properties. */
async function readCollations(
  snapshot: Snapshot,
  relation: Relation,
  names: readonly string[],
): Promise<readonly { charset: string; collation: string }[]> {
  const items = names.flatMap((name) => {
    const column = quoteIdentifier(name);
    return [`charset(${column})`, `collation(${column})`];
  });
  const { rows } = await snapshot.query(
    `select ${items.join(', ')} from (select 1 as trueup_one) as trueup_one left join ${relation.from} on false`,
  );
  const cells = (rows[0] ?? []).map((cell) => cell?.toString() ?? '');
  return names.map((_, place) => ({
    charset: cells[place * 2] ?? '',
    collation: cells[place * 2 + 1] ?? '',
  }));
}
