import pg from 'pg';
import { createDatabase } from './database.ts';
import type { CaseTable, CaseTables, ValueCase } from './value-cases.ts';

/** A kind of database that the value cases run on, as source and as downstream. */
export interface CaseEngine {
  readonly name: string;
  /** The tables of a case in this engine's words; undefined when the case has none for it. */
  tablesOf(valueCase: ValueCase): CaseTables | undefined;
  /** A database of its own. */
  open(): Promise<CaseDatabase>;
}

export interface CaseDatabase {
  run(statements: readonly string[]): Promise<void>;
  /** Makes a table with its rows. */
  createTable(name: string, table: CaseTable): Promise<void>;
  /** The side over such a table, as a config writes it. */
  sideConfig(table: string): Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}

const TIME = "at timestamptz not null default '2026-11-30 12:30+00'";

export const postgresEngine: CaseEngine = {
  name: 'postgres',
  tablesOf: (valueCase) => valueCase.postgres,
  open: async () => {
    const database = await createDatabase();
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const run = async (statements: readonly string[]) => {
      for (const statement of statements) await client.query(statement);
    };
    return {
      run,
      createTable: (name, table) => run(statementsOf(name, table)),
      sideConfig: (table) => ({ type: 'postgres', url: database.url, table, time: 'at' }),
      close: async () => {
        await client.end();
        await database.drop();
      },
    };
  },
};

function statementsOf(name: string, { columns, rows }: CaseTable): string[] {
  const names = columnNames(columns);
  const timed = names.includes('at') ? columns : `${columns}, ${TIME}`;
  const into = `insert into ${name} (${names.join(', ')})`;
  const inserts =
    typeof rows === 'string'
      ? [`${into} ${rows}`]
      : rows.length === 0
        ? []
        : [`${into} values ${rows.map((row) => `(${row})`).join(', ')}`];
  return [`create table ${name} (${timed})`, ...inserts];
}

/** The names before the types; commas also stand within `numeric(10,2)`. */
function columnNames(columns: string): readonly string[] {
  return columns
    .replace(/\([^)]*\)/g, '')
    .split(',')
    .map((column) => /^\s*("(?:[^"]|"")+"|\S+)/.exec(column)?.[1] ?? '');
}
