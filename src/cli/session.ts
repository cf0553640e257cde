import { existsSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import { type App, openApp, openStore, prepareStore, type Store } from '../app.ts';
import { type LoadedConfig, loadConfig } from '../config/load.ts';
import { createRedactor } from '../config/redact.ts';
import { EXIT, TrueupError } from '../error.ts';
import type { Actor } from '../jobs/operator.ts';
import { createLogger, type Logger, type LogLevel } from '../observe/logger.ts';
import { assertSchema } from '../store/migrate.ts';
import { type Format, parseFormat } from './output.ts';

const DEFAULT_CONFIGS = ['config/trueup.yaml', 'trueup.yaml'];

export interface GlobalOptions {
  readonly config?: string;
  readonly format?: string;
}

export interface Session {
  readonly loaded: LoadedConfig;
  readonly logger: Logger;
  readonly format: Format;
  readonly redact: (text: string) => string;
}

/** The config that a command was given: `--config`, TRUEUP_CONFIG, or the first default that exists. */
function configPath(command: Command): string {
  const { config } = command.optsWithGlobals<GlobalOptions>();
  const path =
    config ?? process.env['TRUEUP_CONFIG'] ?? DEFAULT_CONFIGS.find((candidate) => existsSync(candidate));
  if (path !== undefined) return path;
  throw new TrueupError('TRU_NO_CONFIG', `there is no ${DEFAULT_CONFIGS.join(' or ')} here`, {
    exit: EXIT.usage,
    hint: 'name one with --config, or make one with: trueup init',
  });
}

function formatOf(command: Command): Format {
  return parseFormat(command.optsWithGlobals<GlobalOptions>().format ?? 'table');
}

/** Until a config is read: passwords of addresses. Afterwards also every secret of the config. */
let hide = createRedactor([]);

/** A text as it may be printed when a command ends with an error, whatever a driver put into it. */
export function printable(text: string): string {
  return hide(text);
}

/** Short commands log warnings only: their answer is on stdout. A server logs what the config says. */
export async function openSession(command: Command, level?: LogLevel): Promise<Session> {
  const format = formatOf(command);
  const loaded = await loadConfig(configPath(command), process.env);
  const redact = createRedactor(loaded.secrets);
  hide = redact;
  const logger = createLogger({ level: level ?? loaded.config.log.level, redact });
  return { loaded, logger, format, redact };
}

/** Opens the store for one command and closes it, whatever happens. */
export async function withStore<T>(
  command: Command,
  fn: (session: Session, store: Store) => Promise<T>,
): Promise<T> {
  const session = await openSession(command, 'warn');
  const store = await openStore(session.loaded.config, process.env, session.logger);
  try {
    // The embedded server is ours alone; elsewhere a person decides when tables change (trueup migrate).
    if (store.embedded) await prepareStore(store, session.logger);
    await assertSchema(store.db);
    return await fn(session, store);
  } finally {
    await store.close();
  }
}

/** Opens store, queue and sides for one command. */
export async function withApp<T>(
  command: Command,
  fn: (session: Session, app: App) => Promise<T>,
): Promise<T> {
  return withStore(command, async (session, store) => {
    const app = await openApp(session.loaded, store, process.env, session.logger);
    try {
      return await fn(session, app);
    } finally {
      await app.close();
    }
  });
}

/** Who does it, for the audit: TRUEUP_ACTOR, else the system's user. */
export function actor(): Actor {
  return { name: process.env['TRUEUP_ACTOR'] ?? systemUser(), origin: `cli ${hostname()}` };
}

function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a uid that has no name.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
