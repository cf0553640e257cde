import { resolve } from 'node:path';
import type { Config } from '../config/schema.ts';
import { Secret } from '../config/secret.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../embedded/postgres.ts';
import { within } from '../jobs/within.ts';
import type { Logger } from '../observe/logger.ts';
import { type Db, openDatabase } from '../store/database.ts';
import { migrate } from '../store/migrate.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const CLOSE_MS = 1_000;
/** What one process may have open at once; docs/guides/going-to-production.md names it. */
const CONNECTIONS = 10;

export interface Store {
  readonly db: Db;
  readonly url: Secret;
  readonly embedded: EmbeddedPostgres | null;
  close(): Promise<void>;
}

/** Opens the store: `store.url`, else DATABASE_URL, else the embedded PostgreSQL in `.trueup/` of this directory. */
export async function openStore(
  config: Pick<Config, 'store'>,
  env: Environment,
  logger: Logger,
): Promise<Store> {
  const given = config.store.url ?? (env['DATABASE_URL'] ? new Secret(env['DATABASE_URL']) : null);
  const embedded = given ? null : await startEmbedded(logger);
  const url = given ?? new Secret(embedded ? await embedded.ensureDatabase('trueup') : '');
  const db = openDatabase(url.reveal(), { applicationName: 'trueup', max: CONNECTIONS });
  return {
    db,
    url,
    embedded,
    close: async () => {
      // Waits for statements in hand, which a store that does not answer may never end.
      await within(db.destroy(), CLOSE_MS);
      await embedded?.stop();
    },
  };
}

function startEmbedded(logger: Logger): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({
    dir: resolve('.trueup', 'postgres'),
    onRestart: (reason) =>
      logger.warn({ event: 'embedded.restarted', reason }, 'the embedded PostgreSQL was started again'),
  });
}

/** Makes or updates the store's tables; other starters wait for it. */
export async function prepareStore(store: Store, logger: Logger): Promise<string[]> {
  const { applied } = await migrate(store.db);
  if (applied.length > 0) logger.info({ event: 'store.migrated', applied }, 'store migrated');
  return applied;
}
