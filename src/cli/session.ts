import { existsSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { type App, openApp, openStore, prepareStore, type Store } from '../app.ts';
import { ConfigError } from '../config/config-error.ts';
import { type LoadedConfig, loadConfig } from '../config/load.ts';
import { createRedactor } from '../config/redact.ts';
import { EXIT, TrueupError } from '../error.ts';
import type { Actor } from '../jobs/operator.ts';
import { createLogger, type Logger, type LogLevel } from '../observe/logger.ts';
import { assertSchema } from '../store/migrate.ts';
import { activeConfig } from './active-config.ts';
import { type Format, parseFormat, say } from './output.ts';

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

/** What a command has that needs the store and no configuration of its own. */
export interface StoreSession {
  /** The config file that was named or lies here; null where there is none. */
  readonly local: LoadedConfig | null;
  readonly logger: Logger;
  readonly format: Format;
}

/** The file that a person named: `--config`, else TRUEUP_CONFIG. */
function namedConfig(command: Command): string | undefined {
  return command.optsWithGlobals<GlobalOptions>().config ?? process.env['TRUEUP_CONFIG'];
}

/** The config that a command was given: the named one, or the first default that exists. */
function configPath(command: Command): string {
  const path = namedConfig(command) ?? DEFAULT_CONFIGS.find((candidate) => existsSync(candidate));
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

/** Opens the store that this config names, for one command, and closes it, whatever happens. */
export async function withStore<T>(
  command: Command,
  fn: (session: Session, store: Store) => Promise<T>,
): Promise<T> {
  const session = await openSession(command, 'warn');
  const store = await openStore(session.loaded.config, process.env, session.logger);
  return usingStore(store, session.logger, () => fn(session, store));
}

/**
 * Opens the store for a command that needs nothing else: by the config file, or, where there is none, by DATABASE_URL
 * or the embedded PostgreSQL of this directory.
 */
export async function withStoreAlone<T>(
  command: Command,
  fn: (session: StoreSession, store: Store) => Promise<T>,
): Promise<T> {
  const { session, store } = await openStoreAlone(command);
  return usingStore(store, session.logger, () => fn(session, store));
}

export async function openStoreAlone(command: Command): Promise<{ session: StoreSession; store: Store }> {
  const format = formatOf(command);
  const local = await localConfig(command);
  if (local === null) requireStore();
  const logger = createLogger({ level: 'warn', redact: createRedactor(local?.secrets ?? []) });
  const settings = local?.config ?? { store: {} };
  return { session: { local, logger, format }, store: await openStore(settings, process.env, logger) };
}

/** The config file, or null where there is none; one that merely lies here may be unusable when DATABASE_URL is set. */
async function localConfig(command: Command): Promise<LoadedConfig | null> {
  const named = namedConfig(command);
  const path = named ?? DEFAULT_CONFIGS.find((candidate) => existsSync(candidate));
  if (path === undefined) return null;
  try {
    return await loadConfig(path, process.env);
  } catch (error) {
    if (!(error instanceof ConfigError) || named !== undefined || !process.env['DATABASE_URL']) throw error;
    say(`warning: ${path} cannot be used here; going by DATABASE_URL (see what is wrong with: trueup check)`);
    return null;
  }
}

function requireStore(): void {
  if (process.env['DATABASE_URL'] || existsSync(resolve('.trueup', 'postgres'))) return;
  throw new TrueupError('TRU_NO_CONFIG', 'nothing here says where the store is', {
    exit: EXIT.usage,
    hint: 'set DATABASE_URL, or name a config file with --config',
  });
}

async function usingStore<T>(store: Store, logger: Logger, fn: () => Promise<T>): Promise<T> {
  try {
    // The embedded server is ours alone; elsewhere a person decides when tables change (trueup migrate).
    if (store.embedded) await prepareStore(store, logger);
    await assertSchema(store.db);
    return await fn();
  } finally {
    await store.close();
  }
}

/** Opens store, queue and sides for one command, by this config; where there is none, by the active one. */
export async function withApp<T>(
  command: Command,
  fn: (session: Session, app: App) => Promise<T>,
): Promise<T> {
  return withStoreAlone(command, async ({ local, format, logger }, store) => {
    const loaded = local ?? (await activeConfig(store.db, null));
    return usingApp({ loaded, format, logger }, store, fn);
  });
}

/** The same by the configuration that every process follows (rule 7.1). */
export async function withActiveApp<T>(
  command: Command,
  fn: (session: Session, app: App) => Promise<T>,
): Promise<T> {
  return withStoreAlone(command, async ({ local, format, logger }, store) =>
    usingApp({ loaded: await activeConfig(store.db, local), format, logger }, store, fn),
  );
}

async function usingApp<T>(
  opened: Omit<Session, 'redact'>,
  store: Store,
  fn: (session: Session, app: App) => Promise<T>,
): Promise<T> {
  const redact = createRedactor(opened.loaded.secrets);
  const logger = createLogger({ level: 'warn', redact });
  const app = await openApp(opened.loaded, store, process.env, logger);
  try {
    return await fn({ ...opened, logger, redact }, app);
  } finally {
    await app.close();
  }
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
