import { COLUMNS, type Compensation, type CompensationRow, fromRow } from './compensation-row.ts';
import { UNDECIDED_SINCE } from './compensations.ts';
import type { Db } from './database.ts';

/** Rows that were sent, or whose worker is gone: claimed for looks, or recovered by the sweep. */

/** Sent rows that are due for a look, claimed by moving their due time (the claim ends by itself). */
export async function claimSettles(
  db: Db,
  reconciliation: string,
  limit: number,
  claimMs: number,
): Promise<Compensation[]> {
  const { rows } = await db.raw<{ rows: CompensationRow[] }>(
    `with due as (
       select id from compensation
        where reconciliation = :reconciliation and state in ('applied', 'unknown') and due_at <= clock_timestamp()
        order by due_at limit :limit for update skip locked)
     update compensation c set due_at = clock_timestamp() + :claimMs * interval '1 millisecond'
      where c.id in (select id from due) returning ${COLUMNS}`,
    { reconciliation, limit, claimMs },
  );
  return rows.map(fromRow);
}

/** Looked at, not settled: due again after this. A look that could not decide starts a clock that only one that could stops. */
export async function postponeSettle(
  db: Db,
  id: string,
  postpone: { afterMs: number; undecided: boolean },
): Promise<void> {
  await db('compensation')
    .where({ id })
    .whereIn('state', ['applied', 'unknown'])
    .update({
      due_at: db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [postpone.afterMs]),
      undecided_since: postpone.undecided ? db.raw(UNDECIDED_SINCE) : null,
    });
}

/** Sends whose lease ran out: nobody will ever report them, so their outcome is unknown (rule 6.8). */
export async function settleLostLeases(db: Db, limit: number): Promise<Compensation[]> {
  const { rows } = await db.raw<{ rows: CompensationRow[] }>(
    `with lost as (
       select id from compensation where state = 'sending' and lease_until < clock_timestamp()
        order by id limit :limit for update skip locked),
     ended as (
       update attempt a set ended_at = clock_timestamp(), outcome = 'lease-lost', error_code = 'lease-lost'
         from compensation c where c.id in (select id from lost)
          and a.compensation_id = c.id and a.number = c.attempt_number and a.ended_at is null)
     update compensation c set state = 'unknown', last_unknown = true, unknown_since = coalesce(c.unknown_since, c.last_sent_at), attempts = attempts + 1,
            due_at = clock_timestamp(), lease_until = null, lease_owner = null
      where c.id in (select id from lost) returning ${COLUMNS}`,
    { limit },
  );
  return rows.map(fromRow);
}

/** Queued rows whose job is gone (a flushed queue, a dead worker): back to the ledger, never lost (rule 6.19). */
export async function returnLostRings(db: Db, limit: number): Promise<number> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `with lost as (
       select id from compensation where state = 'queued' and ring_until < clock_timestamp()
        order by id limit ? for update skip locked)
     update compensation c set state = 'ready', due_at = clock_timestamp(), ring_until = null, lease_owner = null
      where c.id in (select id from lost) returning c.id`,
    [limit],
  );
  return rows.length;
}

/** Sent rows of reconciliations other than these. */
export async function sentWithout(
  db: Db,
  reconciliations: readonly string[],
  limit: number,
): Promise<Compensation[]> {
  const rows: CompensationRow[] = await db('compensation')
    .whereIn('state', ['applied', 'unknown'])
    .whereNotIn('reconciliation', [...reconciliations])
    .orderBy('id')
    .limit(limit)
    .select(db.raw(COLUMNS));
  return rows.map(fromRow);
}
