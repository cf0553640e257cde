import { type Db, inTransaction } from './database.ts';
import { DECISION_STANDS } from './decisions.ts';
import { deleteIdleRunGates } from './run-gate.ts';

export interface RetentionAges {
  readonly runsMs: number;
  /** Of diffs with their compensations and attempts. */
  readonly diffsMs: number;
}

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
 * Deletes what ended longer ago than the configuration keeps it, at most `limit` rows of each kind and each kind in a
 * statement of its own; call again while a count equals `limit`. Ends after the statement in hand when `signal` aborts.
 * With a diff go its compensations, attempts and events. Kept however old: open and failed diffs, earlier
 * ones of the same key, whose compensations say what was sent for it, diffs with a compensation that has not ended
 * (escalated with an unknown last attempt is not ended, rule 6.6), runs that such a diff, a compensation or an
 * unsettled suspect belongs to, each schedule's latest slot, and the audit.
 */
export async function deleteExpired(
  db: Db,
  ages: RetentionAges,
  limit: number,
  signal: AbortSignal,
): Promise<Expired> {
  const { diffsMs, runsMs } = ages;
  const expired = { diffs: 0, emptied: 0, runs: 0, slots: 0, alerts: 0 };
  if (!signal.aborted) await deleteIdleRunGates(db);
  if (!signal.aborted) expired.diffs = await deleteDiffs(db, diffsMs, limit);
  if (!signal.aborted) expired.emptied = await emptyDecidedDiffs(db, diffsMs, limit);
  if (!signal.aborted) expired.runs = await deleteRuns(db, runsMs, limit);
  if (!signal.aborted) expired.slots = await deleteSlots(db, runsMs, limit);
  if (!signal.aborted) expired.alerts = await deleteAlerts(db, runsMs, limit);
  return expired;
}

/** `now()` and not `clock_timestamp()`: only what is fixed within a statement can be looked for in an index. */
const AGO = `now() - :ageMs * interval '1 millisecond'`;

/**
 * Counted and not `not exists`, which the planner answers by reading both tables whole; so each row is asked for by
 * itself, in the order of the index, and the limit ends it.
 */
const none = (from: string) => `0 = (select count(*) from ${from})`;

const DIFF_EXPIRED = `d.state not in ('open', 'failed') and d.closed_at < ${AGO}
  and ${none(`compensation c where c.diff_id = d.id
                   and (c.ended_at is null or (c.state = 'escalated' and c.last_unknown))`)}
  and ${none(`diff again where again.reconciliation = d.reconciliation
                   and again.business_key = d.business_key and again.state in ('open', 'failed')`)}`;

async function deleteDiffs(db: Db, ageMs: number, limit: number): Promise<number> {
  return count(
    db,
    `delete from diff where id in (
       select d.id from diff d where ${DIFF_EXPIRED} and not (${DECISION_STANDS})
        order by d.closed_at limit :limit for update skip locked)`,
    { ageMs, limit },
  );
}

async function emptyDecidedDiffs(db: Db, ageMs: number, limit: number): Promise<number> {
  return inTransaction(db, async (trx) => {
    const { rows } = await trx.raw<{ rows: { id: string }[] }>(
      `update diff set source_record = null, downstream_record = null, fields = '[]' where id in (
         select d.id from diff d where ${DIFF_EXPIRED} and ${DECISION_STANDS}
            and (d.source_record is not null or d.downstream_record is not null or d.fields <> '[]')
          order by d.closed_at limit :limit for update skip locked)
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
          and ${none(`(select from diff d where d.run_id = r.id and d.state in ('open', 'failed') limit 1) d`)}
          and ${none('(select from compensation c where c.run_id = r.id limit 1) c')}
          and ${none(`(select from suspect s where s.run_id = r.id and s.state in ('waiting', 'undecided') limit 1) s`)}
        order by r.ended_at limit :limit for update skip locked)`,
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
        order by s.nominal limit :limit for update skip locked))`,
    { ageMs, limit },
  );
}

async function deleteAlerts(db: Db, ageMs: number, limit: number): Promise<number> {
  return count(
    db,
    `delete from alert where id in (
       select a.id from alert a where a.state = 'recovered' and a.recovered_at < ${AGO}
          and not exists (select from alert_message m where m.alert_id = a.id and m.state = 'waiting')
        order by a.recovered_at limit :limit for update skip locked)`,
    { ageMs, limit },
  );
}

async function count(db: Db, sql: string, bindings: { ageMs: number; limit: number }): Promise<number> {
  const result = await db.raw<{ rowCount: number | null }>(sql, bindings);
  return result.rowCount ?? 0;
}
