import type { MysqlSideConfig } from '../../config/schema.ts';
import { isUsableKey } from '../key.ts';
import { type Key, keyText, type SideRecord, type Window } from '../record.ts';
import type { Side, SideClock, SideDescription } from '../side.ts';
import { type Places, placesOf, type SideContext } from './mapping.ts';
import { mysqlAddress } from './mysql-address.ts';
import { readClock } from './mysql-clock.ts';
import { type Column, readColumns } from './mysql-columns.ts';
import { describeMysql } from './mysql-describe.ts';
import { type KeyColumn, keyColumnOf } from './mysql-key.ts';
import { keyConditions } from './mysql-lookup.ts';
import { MYSQL_CELLS, selected } from './mysql-record.ts';
import { MysqlSession, type Snapshot } from './mysql-session.ts';
import { quoteTable } from './mysql-sql.ts';
import { windowCondition } from './mysql-time.ts';
import { type RecordReader, recordReader } from './record-reader.ts';
import { type Relation, select } from './relation.ts';
import { configuredRelation, misconfigured, zoneOfTime } from './sql-config.ts';
import { isWithin } from './wall-times.ts';

/** What the server says about the configured columns; read once, then kept. */
export interface Shape {
  readonly columns: ReadonlyMap<string, Column>;
  readonly keys: readonly KeyColumn[];
  readonly time: { readonly column: Column; readonly zone: string } | null;
  readonly reader: RecordReader<Column, Buffer>;
}

/**
 * Reads a table, view or query of MariaDB 10.3, MySQL 5.7 or newer, read-only and in short snapshots (rule 5.1). Does
 * not connect before it is first used. Throws `SideError` when the configuration names no table or no server.
 */
export function createMysqlSide(config: MysqlSideConfig, context: SideContext): Side {
  return new MysqlSide(config, context);
}

class MysqlSide implements Side {
  readonly label: string;
  readonly canScan: boolean;
  /** Scans sort by the bytes of the canonical key, whatever the collation or type of its columns. */
  readonly ordered: boolean;
  readonly #config: MysqlSideConfig;
  readonly #context: SideContext;
  readonly #where: string;
  readonly #relation: Relation;
  readonly #places: Places;
  readonly #session: MysqlSession;
  #shape: Promise<Shape> | undefined;

  constructor(config: MysqlSideConfig, context: SideContext) {
    const address = mysqlAddress(config.url, context.name);
    const database = address.database === '' ? '' : `${address.database}.`;
    this.label = `mysql ${database}${config.table ?? '(query)'}`;
    this.#where = `${context.name} ${this.label} at ${address.shown}`;
    this.canScan = config.time !== undefined;
    this.ordered = this.canScan;
    this.#config = config;
    this.#context = context;
    this.#relation = configuredRelation(config, this.#where, quoteTable);
    this.#places = placesOf({ key: config.key ?? [], fields: config.fields ?? [] }, context, (name) => name);
    this.#session = new MysqlSession({
      address,
      where: this.#where,
      statementTimeout: config.statementTimeout,
    });
  }

  async clock(signal: AbortSignal): Promise<SideClock> {
    return this.#session.read(signal, (snapshot) => readClock(snapshot, this.#where, signal));
  }

  async *scan(window: Window, signal: AbortSignal): AsyncGenerator<readonly SideRecord[]> {
    const snapshot = await this.#session.open(signal);
    let ended = false;
    try {
      const shape = await this.#shapeFrom(snapshot);
      for await (const rows of snapshot.pages(this.#scanStatement(shape, window), this.#config.pageSize)) {
        const records = rows.map(shape.reader.read).filter((record) => isWithin(record, window));
        if (records.length > 0) yield records;
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
      const items = shape.reader.columns.map(selected);
      const found: SideRecord[] = [];
      for (const condition of keyConditions(shape.keys, [...wanted.values()], this.#config.pageSize)) {
        const { rows } = await snapshot.query(select(this.#relation, items, [condition]));
        for (const row of rows) {
          const record = shape.reader.read(row);
          // Most collations also find other spellings, and blanks at the end; they are other keys.
          if (wanted.has(keyText(record.key))) found.push(record);
        }
      }
      return found;
    });
  }

  async describe(signal: AbortSignal): Promise<SideDescription> {
    return this.#session.read(signal, async (snapshot) => {
      const shape = await this.#shapeFrom(snapshot);
      const described = await describeMysql(snapshot, {
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

  #scanStatement({ time, keys, reader }: Shape, window: Window): string {
    const condition = time === null ? undefined : windowCondition(time.column, window, time.zone);
    if (condition === undefined) {
      const found =
        time === null ? 'no time column is configured' : `${time.column.name} is ${time.column.native}`;
      throw misconfigured(this.#where, `a window needs a column with a timestamp or date, but ${found}`);
    }
    const order = `order by ${keys.map((key) => key.order).join(', ')}`;
    return select(this.#relation, reader.columns.map(selected), [condition], order);
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
    const { rules, keyNames } = this.#context;
    const timeName = this.#config.time;
    const names = [...keyPlaces, ...fieldPlaces].map(([, column]) => column);
    const columns = await readColumns(
      snapshot,
      this.#relation,
      timeName === undefined ? names : [...names, timeName],
    );
    const column = (name: string): Column => {
      const found = columns.get(name);
      if (found === undefined) throw misconfigured(this.#where, `there is no column ${name}`);
      return found;
    };
    const keys = keyPlaces.map(([name, place]) => {
      const key = keyColumnOf(name, column(place), rules[name]);
      if (typeof key === 'string') throw misconfigured(this.#where, key);
      return key;
    });
    const time =
      timeName === undefined
        ? null
        : { column: column(timeName), zone: zoneOfTime(timeName, this.#places, rules) };
    const fields = fieldPlaces.map(([name, place]) => ({ name, column: column(place) }));
    const reader = recordReader({ keys, time, fields, rules, keyNames }, MYSQL_CELLS);
    return { columns, keys, time, reader };
  }
}
