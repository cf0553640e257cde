import type { Db } from './database.ts';

/**
 * Upkeep is work that one process does for all: the first that asks when it is due gets it, and nobody is asked again
 * for `everyMs`. Called in a transaction, a second asker waits for the first one's end.
 */
export async function claimUpkeep(db: Db, name: string, everyMs: number): Promise<boolean> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `insert into upkeep as u (name, next_at) values (:name, clock_timestamp() + :everyMs * interval '1 millisecond')
     on conflict (name) do update set next_at = excluded.next_at where u.next_at <= clock_timestamp()
     returning name`,
    { name, everyMs },
  );
  return rows.length === 1;
}

/** Nobody else gets this upkeep before `afterMs` have passed. For the one who claimed it. */
export async function postponeUpkeep(db: Db, name: string, afterMs: number): Promise<void> {
  await db('upkeep')
    .where({ name })
    .update({ next_at: db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [afterMs]) });
}
