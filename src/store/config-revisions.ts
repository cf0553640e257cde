import { EXIT, TrueupError } from '../error.ts';
import type { Instant } from '../reconcile/instant.ts';
import { recordAudit } from './audit.ts';
import { type Db, inTransaction, only } from './database.ts';
import { jsonColumn } from './json-column.ts';
import { readMeta } from './meta.ts';

/** A configuration as it was stored: numbered, never changed (rule 7.1). */
export interface ConfigRevision {
  readonly revision: number;
  readonly digest: string;
  readonly document: unknown;
  readonly createdAt: Instant;
  readonly createdBy: string;
  /** When it last became active; null when it never was. */
  readonly activatedAt: Instant | null;
}

interface RevisionRow {
  revision: number;
  digest: string;
  document: unknown;
  created_at: Instant;
  created_by: string;
  activated_at: Instant | null;
}

/** Stores a configuration and gives its number; one with the same digest keeps the number it has. */
export async function saveRevision(
  db: Db,
  config: { digest: string; document: unknown; actor: string },
): Promise<number> {
  return inTransaction(db, async (trx) => {
    const find = () => trx('config_revision').where({ digest: config.digest }).first('revision');
    const known: { revision: number } | undefined = await find();
    if (known !== undefined) return known.revision;
    const [saved]: { revision: number }[] = await trx('config_revision')
      .insert({ digest: config.digest, document: jsonColumn(config.document), created_by: config.actor })
      .onConflict('digest')
      .ignore()
      .returning('revision');
    if (saved !== undefined) return saved.revision;
    const other: { revision: number } | undefined = await find();
    return only(other === undefined ? [] : [other]).revision;
  });
}

/** Makes a revision the one that every process follows. False when it is that already. Audited. */
export async function activateRevision(
  db: Db,
  revision: number,
  actor: string,
  origin: string,
): Promise<boolean> {
  return inTransaction(db, async (trx) => {
    await trx('meta').forUpdate().select('only_row');
    const { activeRevision: before } = await readMeta(trx);
    if (before === revision) return false;
    const activated = await trx('config_revision')
      .where({ revision })
      .update({ activated_at: trx.raw('clock_timestamp()') });
    if (activated === 0)
      throw new TrueupError('TRU_NO_REVISION', `the store has no configuration revision ${revision}`, {
        exit: EXIT.usage,
        hint: 'store it first with: trueup apply',
      });
    await trx('meta').update({ active_revision: revision });
    await recordAudit(trx, {
      actor,
      origin,
      action: 'activate-config',
      subject: `config revision ${revision}`,
      reason: null,
      before: { revision: before },
      after: { revision },
    });
    return true;
  });
}

/** The revision that processes follow; null before the first activation. `readMeta` gives its number alone. */
export async function activeRevision(db: Db): Promise<ConfigRevision | null> {
  const row: RevisionRow | undefined = await db('config_revision')
    .join('meta', 'meta.active_revision', 'config_revision.revision')
    .first('config_revision.*');
  return row === undefined ? null : fromRow(row);
}

export async function readRevision(db: Db, revision: number): Promise<ConfigRevision | null> {
  const row: RevisionRow | undefined = await db('config_revision').where({ revision }).first();
  return row === undefined ? null : fromRow(row);
}

function fromRow(row: RevisionRow): ConfigRevision {
  return {
    revision: row.revision,
    digest: row.digest,
    document: row.document,
    createdAt: row.created_at,
    createdBy: row.created_by,
    activatedAt: row.activated_at,
  };
}
