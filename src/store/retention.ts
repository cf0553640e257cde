import { type Db, inTransaction } from './database.ts';
import { DECISION_STANDS } from './decisions.ts';

/** How many rows of each kind one call deleted, or emptied of their records. */
export interface Expired {
  readonly diffs: number;
  /** Closed diffs whose decision still stands (rule 6.5): key and digests stay, all they held of records goes. */
  readonly emptied: number;
  readonly runs: number;
  readonly slots: number;
  readonly alerts: number;
}

/**
 * Deletes what ended longer ago than the configuration keeps it, at most `limit` rows of each kind; call again while
 * a count equals `limit`. With a diff go its compensations, attempts and events. Kept however old: open and failed
 * diffs, diffs with a compensation that has not ended (escalated with an unknown last attempt is not ended, rule
 * 6.6), runs that such a diff, a compensation or an unsettled suspect belongs to, each schedule's latest slot, and
 * the audit.
 */
export async function deleteExpired(
  db: Db,
  ages: { runsMs: number; diffsMs: number },
  limit: number,
): Promise<Expired> {
  return {
    diffs: await deleteDiffs(db, ages.diffsMs, limit),
    emptied: await emptyDecidedDiffs(db, ages.diffsMs, limit),
    runs: await deleteRuns(db, ages.runsMs, limit),
    slots: await deleteSlots(db, ages.runsMs, limit),
    alerts: await deleteAlerts(db, ages.runsMs, limit),
  };
}

const AGO = `clock_timestamp() - :ageMs * interval '1 millisecond'`;

const DIFF_EXPIRED = `d.state not in ('open', 'failed') and d.closed_at < ${AGO}
  and not exists (select from compensation c where c.diff_id = d.id
                   and (c.ended_at is null or (c.state = 'escalated' and c.last_unknown)))`;

async function deleteDiffs(db: Db, ageMs: number, limit: number): Promise<number> {
  return count(
    db,
    `delete from diff where id in (
       select d.id from diff d where ${DIFF_EXPIRED} and not (${DECISION_STANDS})
        order by d.id limit :limit for update skip locked)`,
    { ageMs, limit },
  );
}

async function emptyDecidedDiffs(db: Db, ageMs: number, limit: number): Promise<number> {
  return inTransaction(db, async (trx) => {
    const { rows } = await trx.raw<{ rows: { id: string }[] }>(
      `update diff set source_record = null, downstream_record = null, fields = '[]' where id in (
         select d.id from diff d where ${DIFF_EXPIRED} and ${DECISION_STANDS}
            and (d.source_record is not null or d.downstream_record is not null or d.fields <> '[]')
          order by d.id limit :limit for update skip locked)
       returning id`,
      { ageMs, limit },
    );
    const ids = rows.map((row) => row.id);
    await trx('compensation').whereIn('diff_id', ids).delete();
    await trx('diff_event').whereIn('diff_id', ids).delete();
    return ids.length;
  });
}

async function deleteRuns(db: Db, ageMs: number, limit: number): Promise<number> {
  return count(
    db,
    `delete from run where id in (
       select r.id from run r where r.phase = 'done' and r.ended_at < ${AGO}
          and not exists (select from diff d where d.run_id = r.id and d.state in ('open', 'failed'))
          and not exists (select from compensation c where c.run_id = r.id)
          and not exists (select from suspect s where s.run_id = r.id and s.state in ('waiting', 'undecided'))
        order by r.id limit :limit for update skip locked)`,
    { ageMs, limit },
  );
}

async function deleteSlots(db: Db, ageMs: number, limit: number): Promise<number> {
  return count(
    db,
    `delete from slot where ctid = any(array(
       select s.ctid from slot s where s.nominal < ${AGO}
          and exists (select from slot newer
                       where newer.reconciliation = s.reconciliation and newer.nominal > s.nominal)
        limit :limit for update skip locked))`,
    { ageMs, limit },
  );
}

async function deleteAlerts(db: Db, ageMs: number, limit: number): Promise<number> {
  return count(
    db,
    `delete from alert where id in (
       select a.id from alert a where a.state = 'recovered' and a.recovered_at < ${AGO}
          and not exists (select from alert_message m where m.alert_id = a.id and m.state = 'waiting')
        order by a.id limit :limit for update skip locked)`,
    { ageMs, limit },
  );
}

async function count(db: Db, sql: string, bindings: { ageMs: number; limit: number }): Promise<number> {
  const result = await db.raw<{ rowCount: number | null }>(sql, bindings);
  return result.rowCount ?? 0;
}
