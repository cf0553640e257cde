import type { PostgresSideConfig } from '../../config/schema.ts';
import type { Secret } from '../../config/secret.ts';
import { isUsableKey } from '../key.ts';
import { type Key, keyText, type SideRecord, type Window } from '../record.ts';
import type { Side, SideClock, SideDescription } from '../side.ts';
import { type Places, placesOf, type SideContext } from './mapping.ts';
import { readClock } from './postgres-clock.ts';
import { type Column, type Columns, readColumns } from './postgres-columns.ts';
import { describePostgres } from './postgres-describe.ts';
import { type KeyColumn, keyColumnOf } from './postgres-key.ts';
import { POSTGRES_CELLS } from './postgres-record.ts';
import { PostgresSession, type Snapshot } from './postgres-session.ts';
import { quoteIdentifier, quoteTable } from './postgres-sql.ts';
import { windowCondition } from './postgres-time.ts';
import { type RecordReader, recordReader } from './record-reader.ts';
import { type Relation, select } from './relation.ts';
import { batches, configuredRelation, misconfigured, zoneOfTime } from './sql-config.ts';
import { isWithin } from './wall-times.ts';

/** What the catalogue says about the configured columns; read once, then kept. */
export interface Shape {
  readonly columns: Columns;
  readonly keys: readonly KeyColumn[];
  readonly time: { readonly column: Column; readonly zone: string } | null;
  readonly reader: RecordReader<Column, string>;
}

/**
 * Reads a table, view or query of PostgreSQL 13 or newer, read-only and in short snapshots (rule 5.1). Does not
 * connect before it is first used. Throws `SideError` when the configuration names no table.
 */
export function createPostgresSide(config: PostgresSideConfig, context: SideContext): Side {
  return new PostgresSide(config, context);
}

class PostgresSide implements Side {
  readonly label: string;
  readonly canScan: boolean;
  /** Scans sort by the bytes of the canonical key, whatever the collation or type of its columns. */
  readonly ordered: boolean;
  readonly #config: PostgresSideConfig;
  readonly #context: SideContext;
  readonly #where: string;
  readonly #relation: Relation;
  readonly #places: Places;
  readonly #session: PostgresSession;
  #shape: Promise<Shape> | undefined;

  constructor(config: PostgresSideConfig, context: SideContext) {
    const address = addressOf(config.url);
    this.label = `postgres ${address.database}.${config.table ?? '(query)'}`;
    this.#where = `${context.name} ${this.label} at ${address.host}`;
    this.canScan = config.time !== undefined;
    this.ordered = this.canScan;
    this.#config = config;
    this.#context = context;
    this.#relation = configuredRelation(config, this.#where, quoteTable);
    this.#places = placesOf({ key: config.key ?? [], fields: config.fields ?? [] }, context, (name) => name);
    this.#session = new PostgresSession({
      url: config.url,
      where: this.#where,
      statementTimeout: config.statementTimeout,
    });
  }

  async clock(signal: AbortSignal): Promise<SideClock> {
    return this.#session.read(signal, (snapshot) => readClock(snapshot, this.#where));
  }

  async *scan(window: Window, signal: AbortSignal): AsyncGenerator<readonly SideRecord[]> {
    const snapshot = await this.#session.open(signal);
    let ended = false;
    try {
      const shape = await this.#shapeFrom(snapshot);
      await this.#declareCursor(snapshot, shape, window);
      for (;;) {
        const { rows } = await snapshot.query(`fetch ${this.#config.pageSize} from trueup_scan`);
        const records = rows.map(shape.reader.read).filter((record) => isWithin(record, window));
        if (records.length > 0) yield records;
        if (rows.length < this.#config.pageSize) break;
      }
      ended = true;
    } finally {
      if (ended) await snapshot.close();
      else snapshot.discard();
    }
  }

  async lookup(keys: readonly Key[], signal: AbortSignal): Promise<readonly SideRecord[]> {
    const wanted = new Map(keys.filter(isUsableKey).map((key) => [keyText(key), key]));
    if (wanted.size === 0) return [];
    return this.#session.read(signal, async (snapshot) => {
      const shape = await this.#shapeFrom(snapshot);
      const found: SideRecord[] = [];
      for (const batch of batches([...wanted.values()], this.#config.pageSize)) {
        const columns = bindKeys(shape.keys, batch);
        if (columns[0]?.length === 0) continue;
        const { rows } = await snapshot.query(this.#lookupStatement(shape), columns);
        for (const row of rows) {
          const record = shape.reader.read(row);
          // A case-insensitive collation also finds other spellings; they are other keys.
          if (wanted.has(keyText(record.key))) found.push(record);
        }
      }
      return found;
    });
  }

  async describe(signal: AbortSignal): Promise<SideDescription> {
    return this.#session.read(signal, async (snapshot) => {
      const shape = await this.#shapeFrom(snapshot);
      const described = await describePostgres(snapshot, {
        relation: this.#relation,
        shape,
        places: this.#places,
        timeName: this.#config.time,
      });
      return { label: this.label, ...described };
    });
  }

  async close(): Promise<void> {
    await this.#session.close();
  }

  async #declareCursor(snapshot: Snapshot, shape: Shape, window: Window): Promise<void> {
    const { time, keys, reader } = shape;
    const condition = time === null ? undefined : windowCondition(time.column, window, time.zone);
    if (condition === undefined) {
      const found =
        time === null ? 'no time column is configured' : `${time.column.name} is ${time.column.native}`;
      throw misconfigured(this.#where, `a window needs a column with a timestamp or date, but ${found}`);
    }
    const order = `order by ${keys.map((key) => key.order).join(', ')}`;
    const text = select(
      this.#relation,
      reader.columns.map(({ name }) => quoteIdentifier(name)),
      [condition.text],
      order,
    );
    await snapshot.query(`declare trueup_scan no scroll cursor for ${text}`, condition.values);
  }

  #lookupStatement({ keys, reader }: Shape): string {
    const parameters = keys.map((key, i) => `$${i + 1}::${key.cast}[]`).join(', ');
    const [first] = keys;
    const condition =
      keys.length === 1
        ? `${first?.lookup} = any (${parameters})`
        : `(${keys.map((key) => key.lookup).join(', ')}) in (select * from unnest(${parameters}))`;
    return select(
      this.#relation,
      reader.columns.map(({ name }) => quoteIdentifier(name)),
      [condition],
    );
  }

  async #shapeFrom(snapshot: Snapshot): Promise<Shape> {
    this.#shape ??= this.#readShape(snapshot);
    try {
      return await this.#shape;
    } catch (error) {
      this.#shape = undefined;
      throw error;
    }
  }

  async #readShape(snapshot: Snapshot): Promise<Shape> {
    const { keys: keyPlaces, fields: fieldPlaces } = this.#places;
    const timeName = this.#config.time;
    const names = [...keyPlaces, ...fieldPlaces].map(([, column]) => column);
    const columns = await readColumns(
      snapshot,
      this.#relation,
      timeName === undefined ? names : [...names, timeName],
    );
    const keys = keyPlaces.map(([name, place]) => {
      const key = keyColumnOf(name, this.#column(columns, place), this.#context.rules[name], columns.utf8);
      if (typeof key === 'string') throw misconfigured(this.#where, key);
      return key;
    });
    const time =
      timeName === undefined
        ? null
        : {
            column: this.#column(columns, timeName),
            zone: zoneOfTime(timeName, this.#places, this.#context.rules),
          };
    const fields = fieldPlaces.map(([name, place]) => ({ name, column: this.#column(columns, place) }));
    const { rules, keyNames } = this.#context;
    return {
      columns,
      keys,
      time,
      reader: recordReader({ keys, time, fields, rules, keyNames }, POSTGRES_CELLS),
    };
  }

  #column(columns: Columns, name: string): Column {
    const column = columns.byName.get(name);
    if (column === undefined) throw misconfigured(this.#where, `there is no column ${name}`);
    return column;
  }
}

/** Host and database for people; never user, password or parameters. */
function addressOf(url: Secret): { host: string; database: string } {
  try {
    const { host, pathname } = new URL(url.reveal());
    return {
      host: host === '' ? 'localhost' : host,
      database: decodeURIComponent(pathname.slice(1)) || 'postgres',
    };
  } catch {
    // An unreadable address may hold the password anywhere, so nothing of it is shown; connecting will fail and say so.
    return { host: '[unreadable url]', database: '?' };
  }
}

/** One array of parameters per key part. Keys that no value of the columns can have are left out: they are not there. */
function bindKeys(keys: readonly KeyColumn[], batch: readonly Key[]): string[][] {
  const columns: string[][] = keys.map(() => []);
  for (const key of batch) {
    const bound = keys.map((column, i) => column.bind(key[i] ?? ''));
    if (key.length !== keys.length || bound.some((part) => part === undefined)) continue;
    for (const [i, part] of bound.entries()) columns[i]?.push(part ?? '');
  }
  return columns;
}
