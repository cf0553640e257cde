import Table from 'cli-table3';
import { knownNames } from '../config/known-names.ts';
import { EXIT, TrueupError } from '../error.ts';

const FORMATS = ['table', 'json', 'ndjson'] as const;
export type Format = (typeof FORMATS)[number];

export interface Column<T> {
  readonly head: string;
  readonly cell: (row: T) => string;
}

/** Data goes to stdout; everything else goes to stderr. */
export function printRows<T>(format: Format, rows: readonly T[], columns: readonly Column<T>[]): void {
  if (format === 'json') printLine(JSON.stringify(rows));
  else if (format === 'ndjson') for (const row of rows) printLine(JSON.stringify(row));
  else if (rows.length === 0) say('nothing to show');
  else printTable(rows, columns);
}

function printTable<T>(rows: readonly T[], columns: readonly Column<T>[]): void {
  const table = new Table({ head: columns.map((column) => column.head), style: { head: [], border: [] } });
  table.push(...rows.map((row) => columns.map((column) => column.cell(row))));
  printLine(table.toString());
}

/** One object: as JSON, or as `name  value` lines for people. */
export function printObject(format: Format, value: Readonly<Record<string, unknown>>): void {
  if (format !== 'table') {
    printLine(JSON.stringify(value));
    return;
  }
  const width = Math.max(...Object.keys(value).map((name) => name.length));
  for (const [name, shown] of Object.entries(value)) printLine(`${name.padEnd(width)}  ${inWords(shown)}`);
}

function inWords(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return String(value);
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(inWords).join('; ');
  return Object.entries(value)
    .map(([name, inner]) => `${name} ${inWords(inner)}`)
    .join(', ');
}

export function printLine(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

export function parseFormat(text: string): Format {
  const format = FORMATS.find((known) => known === text);
  if (format) return format;
  throw new TrueupError('TRU_USAGE', `there is no format "${text}"`, {
    exit: EXIT.usage,
    hint: knownNames(text, FORMATS, 'formats'),
  });
}

const PLAIN_EVERY_MS = 10_000;

export interface Progress {
  /** What is going on now: a refreshing line where a person sees it move, else a line of its own now and then. */
  show(text: string): void;
  /** A fact that must be read, above the refreshing line. */
  note(text: string): void;
  end(): void;
}

/** On stderr, never between the data. */
export function createProgress(now: () => number = () => performance.now()): Progress {
  const isTty = process.stderr.isTTY;
  let shown = false;
  let last = { at: now(), text: '' };
  const clear = () => {
    if (shown) process.stderr.write('\r\x1b[2K');
    shown = false;
  };
  return {
    show: (text) => {
      if (isTty) {
        const width = Math.max(20, (process.stderr.columns || 80) - 1);
        process.stderr.write(`\r\x1b[2K${text.slice(0, width)}`);
        shown = true;
      } else if (text !== last.text && now() - last.at >= PLAIN_EVERY_MS) {
        say(text);
        last = { at: now(), text };
      }
    },
    note: (text) => {
      clear();
      say(text);
    },
    end: clear,
  };
}
