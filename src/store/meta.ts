import { Secret } from '../config/secret.ts';
import { recordAudit } from './audit.ts';
import { type Db, inTransaction, only } from './database.ts';
import { forgetOutages } from './gates.ts';

/** What the store knows about itself. */
export interface Meta {
  /** Names the queue's namespace (rule 7.1). */
  readonly storeId: string;
  /** Key of the digests that are stored of records. */
  readonly digestKey: Secret;
  readonly systemIdentifier: string | null;
  readonly activeRevision: number | null;
  /** Why no compensation may be sent at all; null when they may (rule 7.3). */
  readonly replayHeld: string | null;
}

interface MetaRow {
  store_id: string;
  digest_key: string;
  system_identifier: string | null;
  active_revision: number | null;
  replay_held: string | null;
}

export async function readMeta(db: Db): Promise<Meta> {
  const rows: MetaRow[] = await db('meta').select();
  const row = only(rows);
  return {
    storeId: row.store_id,
    digestKey: new Secret(row.digest_key),
    systemIdentifier: row.system_identifier,
    activeRevision: row.active_revision,
    replayHeld: row.replay_held,
  };
}

/**
 * Compares the server the store lives on with the one it lived on before. The first call remembers it. When it
 * changed, the store was restored or copied and may not know what it already sent: all replay is held until a person
 * releases it (rule 7.3). A role that may not read the identifier changes nothing.
 */
export async function claimIdentity(db: Db): Promise<{ changed: boolean }> {
  return inTransaction(db, async (trx) => {
    const rows: MetaRow[] = await trx('meta').forUpdate().select();
    const known = only(rows);
    const found = await systemIdentifier(trx);
    if (found === null || found === known.system_identifier) return { changed: false };
    if (known.system_identifier === null) {
      await trx('meta').update({ system_identifier: found });
      return { changed: false };
    }
    const reason = `the store moved from server ${known.system_identifier} to ${found}: it was restored or copied, and may not know its latest sends`;
    await trx('meta').update({ system_identifier: found, replay_held: known.replay_held ?? reason });
    await recordAudit(trx, {
      actor: 'trueup',
      origin: 'start',
      action: 'hold-replay',
      subject: 'store',
      reason,
      before: { systemIdentifier: known.system_identifier, replayHeld: known.replay_held },
      after: { systemIdentifier: found, replayHeld: known.replay_held ?? reason },
    });
    return { changed: true };
  });
}

/** A person lets replay go on. False when it was not held. */
export async function releaseReplay(db: Db, reason: string, actor: string, origin: string): Promise<boolean> {
  return inTransaction(db, async (trx) => {
    const rows: MetaRow[] = await trx('meta').forUpdate().select();
    const held = only(rows).replay_held;
    if (held === null) return false;
    await trx('meta').update({ replay_held: null });
    await forgetOutages(trx);
    await recordAudit(trx, {
      actor,
      origin,
      action: 'release-replay',
      subject: 'store',
      reason,
      before: { replayHeld: held },
      after: { replayHeld: null },
    });
    return true;
  });
}

/** Asks for permission first: a refused call would end the transaction. */
async function systemIdentifier(db: Db): Promise<string | null> {
  const may = await db.raw<{ rows: { may: boolean }[] }>(
    `select has_function_privilege('pg_catalog.pg_control_system()', 'execute') as may`,
  );
  if (!only(may.rows).may) return null;
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    'select system_identifier::text as id from pg_catalog.pg_control_system()',
  );
  return only(rows).id;
}
