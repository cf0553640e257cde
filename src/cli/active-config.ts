import { resolve } from 'node:path';
import { type LoadedConfig, loadStored } from '../config/load.ts';
import { type StoredGates, storedGates } from '../config/stored-gates.ts';
import { EXIT, TrueupError } from '../error.ts';
import { activeRevision, type ConfigRevision } from '../store/config-revisions.ts';
import type { Db } from '../store/database.ts';
import { say } from './output.ts';

/**
 * The configuration that every process follows, with what its `${...}` stand for in this environment (rule 7.1). As
 * long as none is active it is the local file. Says so when the local file is another one.
 */
export async function activeConfig(db: Db, local: LoadedConfig | null): Promise<LoadedConfig> {
  const active = await activeOrLocal(db, local);
  if ('config' in active) return active;
  return loadStored(active.document, local?.path ?? resolve('trueup.yaml'), process.env);
}

/** The targets of that configuration; needs none of the environment that the rest of it asks for. */
export async function activeGates(db: Db, local: LoadedConfig | null): Promise<StoredGates> {
  const active = await activeOrLocal(db, local);
  return 'config' in active ? active.config : storedGates(active.document, process.env);
}

async function activeOrLocal(db: Db, local: LoadedConfig | null): Promise<LoadedConfig | ConfigRevision> {
  const active = await activeRevision(db);
  if (active === null) {
    if (local === null) {
      throw new TrueupError('TRU_NO_ACTIVE_CONFIG', 'no configuration is active in this store yet', {
        exit: EXIT.usage,
        hint: 'activate one with: trueup up, or trueup apply; or name a file with --config',
      });
    }
    say(`no configuration is active in this store yet: going by ${local.path}`);
    return local;
  }
  if (active.digest === local?.digest) return local;
  if (local !== null) {
    say(
      `${local.path} differs from the active configuration (revision ${active.revision}), which is the one that counts; make the file active with: trueup apply`,
    );
  }
  return active;
}
