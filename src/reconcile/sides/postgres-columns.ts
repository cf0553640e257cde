import type { ValueType } from '../record.ts';
import type { Snapshot } from './postgres-session.ts';
import { quoteIdentifier } from './postgres-sql.ts';
import { type Relation, select } from './relation.ts';

export interface Column {
  readonly name: string;
  /** Type as the catalogue has it; a domain counts as its base type. */
  readonly oid: number;
  /** As PostgreSQL writes it: `numeric(20,2)`. */
  readonly native: string;
  readonly type: ValueType;
  /** True when the column sorts by bytes of UTF-8 without being told to. */
  readonly sortsByBytes: boolean;
  /** Table and column number behind it, null when it is an expression. */
  readonly origin: { readonly table: string; readonly number: number } | null;
}

export interface Columns {
  readonly byName: ReadonlyMap<string, Column>;
  /** True when the server keeps text as UTF-8, so that its bytes are the bytes we compare. */
  readonly utf8: boolean;
}

export const OID = {
  boolean: 16,
  bytea: 17,
  int8: 20,
  int2: 21,
  int4: 23,
  text: 25,
  json: 114,
  float4: 700,
  float8: 701,
  bpchar: 1042,
  varchar: 1043,
  date: 1082,
  timestamp: 1114,
  timestamptz: 1184,
  numeric: 1700,
  uuid: 2950,
  jsonb: 3802,
} as const;

const TYPES: ReadonlyMap<number, ValueType> = new Map<number, ValueType>([
  [OID.boolean, 'boolean'],
  [OID.bytea, 'bytes'],
  [OID.int2, 'integer'],
  [OID.int4, 'integer'],
  [OID.int8, 'integer'],
  [OID.float4, 'float'],
  [OID.float8, 'float'],
  [OID.numeric, 'decimal'],
  [OID.date, 'date'],
  [OID.timestamp, 'instant'],
  [OID.timestamptz, 'instant'],
  [OID.uuid, 'uuid'],
  [OID.json, 'json'],
  [OID.jsonb, 'json'],
]);

const DETAILS = `
  select format_type(f.oid, f.typmod),
         coalesce(c.collname in ('C', 'POSIX', 'ucs_basic'), false),
         coalesce(c.collname = 'default', false)
    from unnest($1::oid[], $2::int4[], $3::oid[], $4::int2[]) with ordinality as f (oid, typmod, relation, number, place)
    left join pg_attribute a on a.attrelid = f.relation and a.attnum = f.number
    left join pg_collation c on c.oid = a.attcollation
   order by f.place`;

/** The newer columns of pg_database are read through JSON, so that older servers only miss them. */
const DATABASE = `
  select to_jsonb(d) ->> 'datlocprovider', d.datcollate, to_jsonb(d) ->> 'datlocale', pg_encoding_to_char(d.encoding)
    from pg_database d where d.datname = current_database()`;

/** Asks the server what the columns are. They are never guessed from their values. */
export async function readColumns(
  snapshot: Snapshot,
  relation: Relation,
  names: readonly string[],
): Promise<Columns> {
  const unique = [...new Set(names)];
  const { fields } = await snapshot.query(select(relation, unique.map(quoteIdentifier), [], 'limit 0'));
  const details = await snapshot.query(DETAILS, [
    fields.map((field) => field.dataTypeID),
    fields.map((field) => field.dataTypeModifier),
    fields.map((field) => field.tableID),
    fields.map((field) => field.columnID),
  ]);
  const database = (await snapshot.query(DATABASE)).rows[0] ?? [];
  const [provider = null, collate = null, locale = null, encoding = null] = database;
  const byDefault = databaseSortsByBytes(provider, collate, locale);
  const byName = new Map(
    fields.map((field, place): [string, Column] => {
      const [native, named, inherits] = details.rows[place] ?? [];
      const column = {
        name: field.name,
        oid: field.dataTypeID,
        native: native ?? '',
        type: TYPES.get(field.dataTypeID) ?? 'text',
        sortsByBytes: named === 't' || (inherits === 't' && byDefault),
        origin: field.tableID > 0 ? { table: String(field.tableID), number: field.columnID } : null,
      } as const;
      return [field.name, column];
    }),
  );
  return { byName, utf8: encoding === 'UTF8' || encoding === 'SQL_ASCII' };
}

/** C and POSIX, and the builtin provider's locales, sort by code point; a `C.UTF-8` of the C library need not. */
function databaseSortsByBytes(
  provider: string | null,
  collate: string | null,
  locale: string | null,
): boolean {
  if (provider === 'b') return locale === 'C' || locale === 'C.UTF-8' || locale === 'PG_UNICODE_FAST';
  if (provider === 'i') return false;
  return collate === 'C' || collate === 'POSIX';
}
