import type { SideDescription } from '../side.ts';
import type { Places } from './mapping.ts';
import type { Shape } from './mysql.ts';
import { replicaState } from './mysql-clock.ts';
import type { Origin } from './mysql-columns.ts';
import type { Row } from './mysql-connection.ts';
import { isForbidden } from './mysql-errors.ts';
import { selected } from './mysql-record.ts';
import type { Snapshot } from './mysql-session.ts';
import { quoteIdentifier, textLiteral } from './mysql-sql.ts';
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
export async function describeMysql(
  snapshot: Snapshot,
  side: Described,
): Promise<Omit<SideDescription, 'label'>> {
  const { shape, relation, places } = side;
  const findings: Findings = { notes: [], warnings: [] };
  const columns = new Map(
    [...places.keys, ...places.fields].flatMap(([name, place]) => {
      const column = shape.columns.get(place);
      return column === undefined ? [] : [[name, { name, type: column.type, native: column.native }]];
    }),
  );
  noteOrder(shape, findings);
  noteTime(side, findings);
  const table = tableOf(shape);
  const unique = table === null ? false : await noteIndexes(snapshot, side, table, findings);
  const filled = table === null ? false : await noteKeyColumns(snapshot, shape, table, findings);
  if (!filled) await countNulls(snapshot, side, findings);
  if (!unique) await countRepeats(snapshot, side, findings);
  if (table !== null) await noteTable(snapshot, table, findings);
  await noteRights(snapshot, findings);
  const text = select(relation, shape.reader.columns.map(selected), [], `limit ${SAMPLES}`);
  const { rows } = await snapshot.query(text);
  return { columns: [...columns.values()], ...findings, samples: rows.map(shape.reader.read) };
}

function noteOrder({ keys }: Shape, { notes }: Findings): void {
  for (const { column, order } of keys) {
    const type = column.text === null ? column.native : `${column.native} ${column.text.collation}`;
    notes.push(
      order === quoteIdentifier(column.name)
        ? `${column.name} sorts by bytes as it is`
        : `${column.name} (${type}) is sorted by ${order}, so an index on it does not help sorting`,
    );
  }
}

function noteTime({ shape, timeName }: Described, { notes, warnings }: Findings): void {
  if (timeName === undefined || shape.time === null) {
    notes.push('without a time column no window can be listed; records are only looked up by key');
    return;
  }
  const { column, zone } = shape.time;
  if (column.kind === 'timestamp') return;
  if (column.kind !== 'datetime' && column.kind !== 'date') {
    warnings.push(`the time column ${timeName} is ${column.native}; a window needs a timestamp or a date`);
    return;
  }
  notes.push(
    `${timeName} has no time zone and is read as wall time of ${zone}; a rule with a zone on that field changes this`,
  );
}

/** The table that all key columns come from; null for queries and expressions. */
function tableOf({ keys }: Shape): Origin | null {
  const [first] = keys;
  const origin = first?.column.origin ?? null;
  if (origin === null) return null;
  const same = keys.every(
    ({ column }) => column.origin?.schema === origin.schema && column.origin.table === origin.table,
  );
  return same ? origin : null;
}

/** Returns true when an index already proves the key unique. */
async function noteIndexes(
  snapshot: Snapshot,
  { shape, timeName }: Described,
  table: Origin,
  { notes }: Findings,
): Promise<boolean> {
  const { rows } = await snapshot.query(
    `select index_name, non_unique, column_name, sub_part from information_schema.statistics where ${inTable(table)} order by index_name, seq_in_index`,
  );
  const indexes = new Map<string, (readonly string[])[]>();
  for (const row of rows.map(texts)) {
    const [index = ''] = row;
    indexes.set(index, [...(indexes.get(index) ?? []), row]);
  }
  const keyNames = shape.keys.map(({ column }) => lower(column.origin?.column));
  const timeColumn = lower(shape.time?.column.origin?.column);
  let [unique, byKey, byTime] = [false, false, false];
  for (const parts of indexes.values()) {
    const names = parts.map(([, , name]) => lower(name));
    const whole = parts.every(([, nonUnique, , prefix]) => nonUnique === '0' && prefix === '');
    unique ||= whole && names.length === keyNames.length && keyNames.every((name) => names.includes(name));
    byKey ||= keyNames.includes(names[0] ?? '');
    byTime ||= timeColumn !== '' && names[0] === timeColumn;
  }
  const key = shape.keys.map(({ column }) => column.name).join(', ');
  if (!unique) notes.push(`no unique index on (${key}) of this table`);
  if (!byKey) notes.push(`no index starts with a column of (${key}); each lookup reads the whole table`);
  if (timeName !== undefined && !byTime) {
    notes.push(`no index starts with ${timeName}; each window reads the whole table`);
  }
  return unique;
}

/** Returns true when no column of the key can be null. */
async function noteKeyColumns(
  snapshot: Snapshot,
  { keys }: Shape,
  table: Origin,
  { warnings }: Findings,
): Promise<boolean> {
  const names = keys.map(({ column }) => textLiteral(column.origin?.column ?? ''));
  const { rows } = await snapshot.query(
    `select column_name, is_nullable, extra from information_schema.columns where ${inTable(table)} and column_name in (${names.join(', ')})`,
  );
  const columns = rows.map(texts);
  for (const [name, , extra = ''] of columns) {
    if (/auto_increment/i.test(extra)) {
      warnings.push(`${name} is numbered by this database; a business key must be the same on both sides`);
    }
  }
  return columns.length === keys.length && columns.every(([, nullable]) => nullable === 'NO');
}

async function countNulls(
  snapshot: Snapshot,
  { relation, shape }: Described,
  findings: Findings,
): Promise<void> {
  const count = await countOf(snapshot, select(relation, ['count(*)'], [`(${someKeyIsNull(shape)})`]));
  if (count !== '0') findings.warnings.push(`${count} records have a null in their key and are undecided`);
}

/** Reads the whole table, which is why it is done only where no index proves the key unique. */
async function countRepeats(
  snapshot: Snapshot,
  { relation, shape }: Described,
  findings: Findings,
): Promise<void> {
  // Grouped by what they sort by: a collation would throw different keys together.
  const columns = shape.keys.map(({ order }) => order).join(', ');
  const tail = `group by ${columns} having count(*) > 1`;
  const repeated = select(relation, ['1 as one'], [`not (${someKeyIsNull(shape)})`], tail);
  const count = await countOf(snapshot, `select count(*) from (${repeated}) as repeated`);
  if (count !== '0') findings.warnings.push(`${count} keys belong to more than one record`);
}

function someKeyIsNull({ keys }: Shape): string {
  return keys.map(({ column }) => `${quoteIdentifier(column.name)} is null`).join(' or ');
}

async function noteTable(snapshot: Snapshot, table: Origin, { warnings }: Findings): Promise<void> {
  const { rows } = await snapshot.query(
    `select engine from information_schema.tables where ${inTable(table)} and table_type = 'BASE TABLE'`,
  );
  const [engine = ''] = texts(rows[0] ?? []);
  if (engine !== '' && engine !== 'InnoDB') {
    warnings.push(
      `${table.table} is kept by ${engine}, which has no snapshots: what is written while it is read may be seen in part`,
    );
  }
}

/** Grants by name; a right that comes through a role is not seen here. */
const WRITES =
  /^GRANT (?!USAGE )(?:ALL PRIVILEGES|[^'`]*\b(?:INSERT|UPDATE|DELETE|DROP|ALTER|CREATE|SUPER)\b)/;

async function noteRights(snapshot: Snapshot, { warnings }: Findings): Promise<void> {
  const { rows } = await snapshot.query('show grants');
  if (rows.some((row) => WRITES.test(texts(row)[0] ?? ''))) {
    warnings.push('this user may also write; trueup needs only SELECT');
  }
  const replica = await replicaState(snapshot);
  if (replica.kind === 'replica') {
    warnings.push(
      'this is a replica, where open transactions of the primary cannot be seen; set window.settle >= window.maxTransactionAge',
    );
    return;
  }
  if (replica.kind === 'hidden') {
    warnings.push(
      'this server is read-only and this user cannot see whether it is a replica; grant REPLICA MONITOR (MariaDB) or REPLICATION CLIENT (MySQL), or set window.settle >= window.maxTransactionAge',
    );
    return;
  }
  try {
    await snapshot.query('select 1 from information_schema.innodb_trx limit 1');
  } catch (error) {
    if (!isForbidden(error)) throw error;
    warnings.push(
      'this user cannot see open transactions; grant PROCESS, or set window.settle >= window.maxTransactionAge',
    );
  }
}

async function countOf(snapshot: Snapshot, text: string): Promise<string> {
  const [[count = null] = []] = (await snapshot.query(text)).rows;
  return count?.toString() ?? '0';
}

function inTable({ schema, table }: Origin): string {
  return `table_schema = ${textLiteral(schema)} and table_name = ${textLiteral(table)}`;
}

function texts(row: Row): readonly string[] {
  return row.map((cell) => cell?.toString() ?? '');
}

function lower(name: string | undefined): string {
  return name?.toLowerCase() ?? '';
}
