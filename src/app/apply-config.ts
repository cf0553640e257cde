import type { LoadedConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import type { Actor } from '../jobs/operator.ts';
import { activateRevision, saveRevision } from '../store/config-revisions.ts';
import { type Db, inTransaction } from '../store/database.ts';
import { setCeilings } from '../store/gates.ts';

/** Stores the configuration as a numbered revision and makes it the active one (rule 7.1). */
export function applyConfig(db: Db, loaded: LoadedConfig, actor: Actor): Promise<number> {
  return inTransaction(db, async (trx) => {
    const { digest, document } = loaded;
    const revision = await saveRevision(trx, { digest, document, actor: actor.name });
    await activateRevision(trx, revision, actor.name, actor.origin);
    await setCeilings(trx, ceilingsOf(loaded.config));
    return revision;
  });
}

/** The ceiling of each gate; where several targets share one, the lowest. Null is unlimited. */
function ceilingsOf({ targets }: Config): Map<string, number | null> {
  const ceilings = new Map<string, number | null>();
  for (const [name, { upstream, watermark }] of Object.entries(targets)) {
    const gate = upstream ?? name;
    const known = ceilings.get(gate) ?? null;
    const own = watermark === 'unlimited' ? null : watermark;
    ceilings.set(gate, known === null || own === null ? (known ?? own) : Math.min(known, own));
  }
  return ceilings;
}
