import type { SideDescription } from '../side.ts';
import type { Places } from './mapping.ts';
import type { Shape } from './postgres.ts';
import { OID } from './postgres-columns.ts';
import type { Row, Snapshot } from './postgres-session.ts';
import { quoteIdentifier } from './postgres-sql.ts';
import { type Relation, select } from './relation.ts';

interface Described {
  readonly relation: Relation;
  readonly shape: Shape;
  readonly places: Places;
  readonly timeName: string | undefined;
}

type Findings = { readonly notes: string[]; readonly warnings: string[] };

const SAMPLES = 3;

/** What `trueup check` shows of a side: columns, how keys are ordered and found, and what is wrong with them. */
export async function describePostgres(
  snapshot: Snapshot,
  side: Described,
): Promise<Omit<SideDescription, 'label'>> {
  const { shape, relation, places } = side;
  const findings: Findings = { notes: [], warnings: [] };
  const columns = [...places.keys, ...places.fields].flatMap(([name, place]) => {
    const column = shape.columns.byName.get(place);
    return column === undefined ? [] : [{ name, type: column.type, native: column.native }];
  });
  noteOrder(shape, findings);
  noteTime(side, findings);
  const table = tableOf(shape);
  const unique = table === null ? false : await noteIndexes(snapshot, side, table, findings);
  const filled = table === null ? false : await noteKeyColumns(snapshot, shape, table, findings);
  if (!filled) await countNulls(snapshot, side, findings);
  if (!unique) await countRepeats(snapshot, side, findings);
  await noteRights(snapshot, table, findings);
  const text = select(
    relation,
    shape.reader.columns.map(({ name }) => quoteIdentifier(name)),
    [],
    `limit ${SAMPLES}`,
  );
  const { rows } = await snapshot.query(text);
  return { columns: uniqueByName(columns), ...findings, samples: rows.map(shape.reader.read) };
}

function uniqueByName<T extends { readonly name: string }>(columns: readonly T[]): readonly T[] {
  return [...new Map(columns.map((column) => [column.name, column])).values()];
}

function noteOrder({ keys }: Shape, { notes }: Findings): void {
  for (const { column, order } of keys) {
    notes.push(
      order === quoteIdentifier(column.name)
        ? `${column.name} sorts by bytes as it is`
        : `${column.name} (${column.native}) is sorted by ${order}, so an index on it does not help sorting`,
    );
  }
}

function noteTime({ shape, timeName }: Described, { notes, warnings }: Findings): void {
  if (timeName === undefined || shape.time === null) {
    notes.push('without a time column no window can be listed; records are only looked up by key');
    return;
  }
  const { column, zone } = shape.time;
  if (column.oid === OID.timestamptz) return;
  if (column.oid !== OID.timestamp && column.oid !== OID.date) {
    warnings.push(`the time column ${timeName} is ${column.native}; a window needs a timestamp or a date`);
    return;
  }
  notes.push(
    `${timeName} has no time zone and is read as wall time of ${zone}; a rule with a zone on that field changes this`,
  );
}

/** The table that all key columns come from; null for queries and expressions. Views count as tables here. */
function tableOf({ keys }: Shape): string | null {
  const tables = new Set(keys.map(({ column }) => column.origin?.table ?? null));
  const [table = null] = tables;
  return tables.size === 1 ? table : null;
}

const INDEXES = `
  select coalesce(bool_or(indisunique and indpred is null
           and (select array_agg(n order by n) from unnest(indkey::int2[]) with ordinality as k (n, place)
                 where place <= indnkeyatts) = (select array_agg(n order by n) from unnest($2::int2[]) n)), false),
         coalesce(bool_or(indpred is null and indkey[0] = any ($2::int2[])), false),
         coalesce(bool_or(indkey[0] = $3::int2), false)
    from pg_index where indrelid = $1::oid and indisvalid`;

/** Returns true when an index already proves the key unique. */
async function noteIndexes(
  snapshot: Snapshot,
  { shape, timeName }: Described,
  table: string,
  { notes }: Findings,
): Promise<boolean> {
  const numbers = shape.keys.map(({ column }) => column.origin?.number ?? 0);
  const time = shape.time?.column.origin?.number ?? 0;
  const { rows } = await snapshot.query(INDEXES, [table, numbers, time]);
  const [unique, byKey, byTime] = (rows[0] ?? []) as Row;
  const key = shape.keys.map(({ column }) => column.name).join(', ');
  if (unique !== 't') notes.push(`no unique index on (${key}) of this table`);
  if (byKey !== 't')
    notes.push(`no index starts with a column of (${key}); each lookup reads the whole table`);
  if (timeName !== undefined && byTime !== 't') {
    notes.push(`no index starts with ${timeName}; each window reads the whole table`);
  }
  return unique === 't';
}

const KEY_COLUMNS = `
  select attname, attidentity <> '' or coalesce(pg_get_expr(d.adbin, d.adrelid) like 'nextval(%', false),
         attnotnull
    from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
   where a.attrelid = $1::oid and a.attnum = any ($2::int2[])`;

/** Returns true when no column of the key can be null. */
async function noteKeyColumns(
  snapshot: Snapshot,
  { keys }: Shape,
  table: string,
  { warnings }: Findings,
): Promise<boolean> {
  const numbers = keys.map(({ column }) => column.origin?.number ?? 0);
  const { rows } = await snapshot.query(KEY_COLUMNS, [table, numbers]);
  for (const [name, generated] of rows) {
    if (generated === 't') {
      warnings.push(`${name} is numbered by this database; a business key must be the same on both sides`);
    }
  }
  return rows.every(([, , filled]) => filled === 't');
}

async function countNulls(
  snapshot: Snapshot,
  { relation, shape }: Described,
  findings: Findings,
): Promise<void> {
  const text = select(relation, ['count(*)'], [`(${someKeyIsNull(shape)})`]);
  const [[count = '0'] = []] = (await snapshot.query(text)).rows;
  if (count !== '0') findings.warnings.push(`${count} records have a null in their key and are undecided`);
}

/** Reads the whole table, which is why it is done only where no index proves the key unique. */
async function countRepeats(
  snapshot: Snapshot,
  { relation, shape }: Described,
  findings: Findings,
): Promise<void> {
  const columns = shape.keys.map(({ column }) => quoteIdentifier(column.name)).join(', ');
  const tail = `group by ${columns} having count(*) > 1`;
  const repeated = select(relation, ['1'], [`not (${someKeyIsNull(shape)})`], tail);
  const [[count = '0'] = []] = (await snapshot.query(`select count(*) from (${repeated}) as repeated`)).rows;
  if (count !== '0') findings.warnings.push(`${count} keys belong to more than one record`);
}

function someKeyIsNull({ keys }: Shape): string {
  return keys.map(({ column }) => `${quoteIdentifier(column.name)} is null`).join(' or ');
}

const RIGHTS = `
  select coalesce(has_table_privilege($1::oid, 'INSERT, UPDATE, DELETE, TRUNCATE'), false),
         pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
         pg_is_in_recovery()`;

async function noteRights(snapshot: Snapshot, table: string | null, { warnings }: Findings): Promise<void> {
  const [[writes, statistics, standby] = []] = (await snapshot.query(RIGHTS, [table])).rows;
  if (writes === 't') warnings.push('this user may also write the table; trueup needs only SELECT');
  if (standby === 't') {
    warnings.push(
      'this is a standby, where open transactions cannot be seen; set window.settle >= window.maxTransactionAge',
    );
  } else if (statistics !== 't') {
    warnings.push(
      'this user cannot see open transactions; grant pg_read_all_stats, or set window.settle >= window.maxTransactionAge',
    );
  }
}
