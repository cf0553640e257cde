import type { Instant } from '../reconcile/instant.ts';
import { type Key, keyFromText, keyText } from '../reconcile/record.ts';
import { forgetUnknown } from './compensations.ts';
import type { Db } from './database.ts';
import { jsonColumn } from './json-column.ts';

export type DiffState = 'open' | 'verified' | 'healed' | 'resolved' | 'failed' | 'dismissed';

export interface OpenDiff {
  readonly id: string;
  readonly reconciliation: string;
  readonly key: Key;
  readonly traceId: string;
}

export interface DiffEvent {
  readonly diffId: string;
  readonly compensationId?: string;
  readonly event: string;
  readonly detail?: unknown;
}

export async function recordDiffEvent(db: Db, event: DiffEvent): Promise<void> {
  await recordDiffEvents(db, [event]);
}

export async function recordDiffEvents(db: Db, events: readonly DiffEvent[]): Promise<void> {
  if (events.length === 0) return;
  await db('diff_event').insert(
    events.map((event) => ({
      diff_id: event.diffId,
      compensation_id: event.compensationId ?? null,
      event: event.event,
      detail: jsonColumn(event.detail ?? {}),
    })),
  );
}

/** Closes an open diff. False when it was closed already. */
export async function closeDiff(
  db: Db,
  id: string,
  end: {
    state: 'verified' | 'healed' | 'resolved' | 'dismissed';
    by: string;
    reason: string;
    dismissedForMs?: number;
  },
): Promise<boolean> {
  const changed = await db('diff')
    .where({ id })
    .whereIn('state', ['open', 'failed'])
    .update({
      state: end.state,
      closed_at: db.raw('clock_timestamp()'),
      closed_by: end.by,
      close_reason: end.reason,
      dismissed_until:
        end.dismissedForMs === undefined
          ? null
          : db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [end.dismissedForMs]),
    });
  if (changed !== 1) return false;
  await forgetUnknown(db, id);
  await recordDiffEvent(db, { diffId: id, event: end.state, detail: { by: end.by, reason: end.reason } });
  return true;
}

/**
 * Closes the open diffs of keys whose sides a look found equal, which began at `seenAt`: not those that were seen
 * differing since, nor those with a repair under way, whose own looks settle it. Call in a transaction.
 */
export async function closeSeenEqual(
  trx: Db,
  reconciliation: string,
  keys: readonly Key[],
  seenAt: Instant,
): Promise<void> {
  if (keys.length === 0) return;
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `select id from diff
      where reconciliation = :reconciliation and business_key = any(:keys::text[]) and state in ('open', 'failed')
        and last_seen < :seenAt
      order by id for no key update`,
    { reconciliation, keys: keys.map(keyText), seenAt },
  );
  const detail = { by: 'trueup', reason: 'a later look found the sides equal' };
  // A statement of its own: it sees the repairs that were planned while the rows were waited for.
  await trx.raw(
    `with closed as (
       update diff d set state = 'healed', closed_at = clock_timestamp(), closed_by = :by, close_reason = :reason
        where d.id = any(:ids::bigint[])
          and not exists (select from compensation c where c.diff_id = d.id and c.ended_at is null)
       returning d.id),
     settled as (
       update compensation c set last_unknown = false from closed
        where c.diff_id = closed.id and c.last_unknown and c.ended_at is not null)
     insert into diff_event (diff_id, event, detail) select id, 'healed', :detail::jsonb from closed`,
    { ...detail, detail: jsonColumn(detail), ids: rows.map((row) => row.id) },
  );
}

/** A person says that no repair will come from here; the diff stays in sight until the sides agree. */
export async function markDiffFailed(db: Db, id: string, by: string, reason: string): Promise<boolean> {
  const changed = await db('diff')
    .where({ id, state: 'open' })
    .update({ state: 'failed', close_reason: reason });
  if (changed !== 1) return false;
  await forgetUnknown(db, id);
  await recordDiffEvent(db, { diffId: id, event: 'failed', detail: { by, reason } });
  return true;
}

/** Open diffs that are due for another look, claimed by moving their next look. */
export async function claimRelooks(
  db: Db,
  reconciliation: string,
  limit: number,
  relookMs: number,
): Promise<OpenDiff[]> {
  const { rows } = await db.raw<{ rows: { id: string; business_key: string; trace_id: string }[] }>(
    `with due as (
       select id from diff
        where reconciliation = :reconciliation and state in ('open', 'failed') and next_look <= clock_timestamp()
        order by next_look limit :limit for update skip locked)
     update diff set next_look = clock_timestamp() + :relookMs * interval '1 millisecond'
       from due where diff.id = due.id returning diff.id, diff.business_key, diff.trace_id`,
    { reconciliation, limit, relookMs },
  );
  return rows.map((row) => ({
    id: row.id,
    reconciliation,
    key: keyFromText(row.business_key),
    traceId: row.trace_id,
  }));
}

/** The diffs among `ids` that are open (or marked failed). */
export async function readOpenDiffs(db: Db, ids: readonly string[]): Promise<OpenDiff[]> {
  const rows = await db('diff')
    .whereIn('id', [...ids])
    .whereIn('state', ['open', 'failed'])
    .orderBy('id')
    .select('id', 'reconciliation', 'business_key', 'trace_id');
  return rows.map((row) => ({
    id: row.id,
    reconciliation: row.reconciliation,
    key: keyFromText(row.business_key),
    traceId: row.trace_id,
  }));
}

/** A diff that was marked failed is open again when a person replays it. */
export async function reopenDiff(db: Db, id: string): Promise<void> {
  await db('diff').where({ id, state: 'failed' }).update({ state: 'open', close_reason: null });
}

/** The look that these diffs were claimed for failed: they are due again after this. */
export async function relookSooner(db: Db, ids: readonly string[], afterMs: number): Promise<void> {
  await db('diff')
    .whereIn('id', [...ids])
    .update({ next_look: db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [afterMs]) });
}
