import type { Instant } from '../reconcile/instant.ts';
import type { Db } from './database.ts';

export interface Worker {
  readonly id: string;
  readonly startedAt: Instant;
  readonly seenAt: Instant;
  readonly version: string;
  /** The configuration revision it follows. */
  readonly revision: number | null;
  /** It ends by itself, so nothing may be left to it. */
  readonly oneShot: boolean;
}

/** Says that a worker is alive. The first call registers it. */
export async function heartbeat(
  db: Db,
  worker: { id: string; version: string; revision: number | null; oneShot?: boolean },
): Promise<void> {
  const values = {
    version: worker.version,
    revision: worker.revision,
    one_shot: worker.oneShot ?? false,
    seen_at: db.raw('clock_timestamp()'),
  };
  await db('worker')
    .insert({ id: worker.id, ...values })
    .onConflict('id')
    .merge(values);
}

/** Workers that said so within the last `withinMs`, on the store's clock. */
export async function liveWorkers(db: Db, withinMs: number): Promise<Worker[]> {
  const rows = await db('worker')
    .where('seen_at', '>=', db.raw(`clock_timestamp() - ? * interval '1 millisecond'`, [withinMs]))
    .orderBy('id')
    .select();
  return rows.map((row) => ({
    id: row.id,
    startedAt: row.started_at,
    seenAt: row.seen_at,
    version: row.version,
    revision: row.revision,
    oneShot: row.one_shot,
  }));
}

export async function removeWorker(db: Db, id: string): Promise<void> {
  await db('worker').where({ id }).delete();
}
