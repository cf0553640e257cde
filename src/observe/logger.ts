import {
  type DestinationStream,
  destination as fileDestination,
  type Logger as PinoLogger,
  pino,
  stdTimeFunctions,
} from 'pino';
import { describeError } from './describe-error.ts';

export type LogLevel = 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

/** One fact: its event name, which never changes, and what belongs to it. Ids, never records. */
interface Fact {
  readonly event: string;
  /** Written with its cause chain and stack. */
  readonly err?: unknown;
  readonly [name: string]: unknown;
}

/** The part of a pino logger that is used here. Every line needs an event name. */
export interface Logger {
  error(fact: Fact, message?: string): void;
  warn(fact: Fact, message?: string): void;
  info(fact: Fact, message?: string): void;
  debug(fact: Fact, message?: string): void;
  trace(fact: Fact, message?: string): void;
  /** False when lines of this level are not written, so that nothing need be read for them. */
  isLevelEnabled(level: LogLevel): boolean;
  /** A logger whose lines all carry these too: run id, compensation id, trace id. */
  child(facts: Readonly<Record<string, unknown>>): Logger;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  /** Replaces secrets in a text; from `createRedactor`. Every text of every line goes through it, names too. */
  readonly redact: (text: string) => string;
  /** Facts on every line: version, worker. */
  readonly base?: Readonly<Record<string, unknown>>;
  /** Left out: stderr, so that stdout stays for data, also under `trueup up`. */
  readonly destination?: DestinationStream;
}

/** JSON lines by pino: `time` in ISO 8601 UTC, `level` as a word, `event`, then the facts. */
export function createLogger({ level, redact, base = {}, destination = stderr() }: LoggerOptions): Logger {
  const logger: PinoLogger = pino(
    {
      level,
      base: { name: 'trueup', pid: process.pid, ...base },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (err: unknown) => (err === undefined ? undefined : describeError(err)) },
    },
    { write: (line) => destination.write(redactLine(line, redact)) },
  );
  return logger;
}

/** Synchronous: the last lines before an exit are the ones that matter. */
function stderr(): DestinationStream {
  return fileDestination({ fd: 2, sync: true });
}

/**
 * Redacts each JSON string of a line by its real text, so that a secret with a quote or a line end in it is found
 * although the line shows it escaped. What stands between the strings, numbers above all, is left as it is.
 */
function redactLine(line: string, redact: (text: string) => string): string {
  return line.replace(/"(?:[^"\\]|\\.)*"/g, (literal) => {
    const text: string = JSON.parse(literal);
    const safe = redact(text);
    return safe === text ? literal : JSON.stringify(safe);
  });
}
