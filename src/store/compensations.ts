import { type CompensationEvent, transition } from '../compensate/state.ts';
import { keyText } from '../reconcile/record.ts';
import { COLUMNS, type Compensation, type CompensationRow, fromRow } from './compensation-row.ts';
import type { Db } from './database.ts';
import { jsonColumn } from './json-column.ts';

export type { Compensation };

export type NewCompensation = Pick<
  Compensation,
  | 'diffId'
  | 'runId'
  | 'reconciliation'
  | 'repair'
  | 'side'
  | 'target'
  | 'orderScope'
  | 'key'
  | 'operation'
  | 'idempotencyKey'
  | 'revision'
  | 'fingerprint'
  | 'payload'
  | 'traceId'
> & { readonly configRevision: number | null };

/**
 * Inserts planned compensations and returns their ids in the same order. A (key, revision) that is open or took is
 * refused by the database; the caller asked for the history first.
 */
export async function insertCompensations(db: Db, planned: readonly NewCompensation[]): Promise<string[]> {
  if (planned.length === 0) return [];
  const rows: { id: string }[] = await db('compensation')
    .insert(
      planned.map((one) => ({
        diff_id: one.diffId,
        run_id: one.runId,
        config_revision: one.configRevision,
        reconciliation: one.reconciliation,
        repair: one.repair,
        side: one.side,
        target: one.target,
        order_scope: one.orderScope,
        business_key: keyText(one.key),
        operation: one.operation,
        idempotency_key: one.idempotencyKey,
        revision: one.revision,
        fingerprint: one.fingerprint,
        payload: jsonColumn(one.payload),
        trace_id: one.traceId,
      })),
    )
    .returning('id');
  return rows.map((row) => row.id);
}

/** Those of the idempotency keys that were used before. */
export async function usedKeys(db: Db, keys: readonly string[]): Promise<Set<string>> {
  const rows: { idempotency_key: string }[] = await db('compensation')
    .whereIn('idempotency_key', [...keys])
    .distinct('idempotency_key');
  return new Set(rows.map((row) => row.idempotency_key));
}

/**
 * Takes the diff's row before its compensations are touched, as every transaction that changes both must, so that
 * no two wait for each other.
 */
export async function lockDiff(trx: Db, diffId: string): Promise<void> {
  await trx.raw('select id from diff where id = ? for no key update', [diffId]);
}

/** One planner at a time per reconciliation: the transaction that calls this waits for the one before. */
export async function lockPlanning(trx: Db, reconciliation: string): Promise<void> {
  await trx.raw('select pg_advisory_xact_lock(hashtextextended(?, 2))', [`planning ${reconciliation}`]);
}

/**
 * All compensations that ever had an idempotency key, newest revision last. Two planners that see the same history
 * are kept apart by `lockPlanning` and, across reconciliations, by the unique index on key and revision.
 */
export async function compensationHistory(db: Db, idempotencyKey: string): Promise<Compensation[]> {
  const rows: CompensationRow[] = await db('compensation')
    .where({ idempotency_key: idempotencyKey })
    .orderBy('revision')
    .select(db.raw(COLUMNS));
  return rows.map(fromRow);
}

/** The compensations of a diff that have not ended. */
export async function openCompensations(db: Db, diffId: string): Promise<Compensation[]> {
  const rows: CompensationRow[] = await db('compensation')
    .where({ diff_id: diffId })
    .whereNull('ended_at')
    .orderBy('id')
    .forUpdate()
    .select(db.raw(COLUMNS));
  return rows.map(fromRow);
}

/** Diff -> fingerprints of its compensations that have not ended; diffs without one are left out. */
export async function openFingerprints(
  db: Db,
  diffIds: readonly string[],
): Promise<Map<string, Set<string>>> {
  const rows: { diff_id: string; fingerprint: string }[] = await db('compensation')
    .whereIn('diff_id', [...diffIds])
    .whereNull('ended_at')
    .select('diff_id', 'fingerprint');
  const found = new Map<string, Set<string>>();
  for (const row of rows) {
    const known = found.get(row.diff_id);
    if (known) known.add(row.fingerprint);
    else found.set(row.diff_id, new Set([row.fingerprint]));
  }
  return found;
}

export interface StateChange {
  /** Only from here; false is returned when the row has moved on meanwhile. */
  readonly from: Pick<Compensation, 'id' | 'state'> & { readonly attemptNumber?: number };
  readonly event: CompensationEvent;
  readonly dueInMs?: number;
  readonly detail?: string;
  readonly values?: Readonly<Record<string, unknown>>;
}

/**
 * The one way a compensation changes state: through the state machine, fenced by the state (and attempt number)
 * the caller saw. False when another worker or person was faster.
 */
export async function changeState(db: Db, change: StateChange): Promise<boolean> {
  const next = transition(change.from.state, change.event);
  const ended = ['verified', 'healed', 'cancelled', 'superseded', 'escalated'].includes(next.name);
  const where: Record<string, unknown> = { id: change.from.id, state: change.from.state };
  if (change.from.attemptNumber !== undefined) where['attempt_number'] = change.from.attemptNumber;
  const changed = await db('compensation')
    .where(where)
    .update({
      state: next.name,
      escalation: next.name === 'escalated' ? next.reason : null,
      escalation_detail: change.detail ?? null,
      due_at: db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [change.dueInMs ?? 0]),
      ended_at: ended ? db.raw('clock_timestamp()') : null,
      // A look after the send found the sides equal: nothing is unknown any more.
      ...(next.name === 'verified' ? { last_unknown: false } : {}),
      ring_until: null,
      lease_until: null,
      lease_owner: null,
      ...change.values,
    });
  return changed === 1;
}

/** What `undecided_since` becomes with a look that could not decide: later ones do not restart the clock. */
export const UNDECIDED_SINCE = 'coalesce(undecided_since, clock_timestamp())';

/** Notes that the latest look before a send could not decide, in whatever state the row is by now. */
export async function noteUndecided(db: Db, id: string): Promise<void> {
  await db('compensation')
    .where({ id })
    .whereNull('ended_at')
    .update({ undecided_since: db.raw(UNDECIDED_SINCE) });
}

/** A worker takes the row its job names; null when the ring is old, so a late or doubled job does nothing. */
export async function claimQueued(
  db: Db,
  id: string,
  ring: number,
  owner: string,
  ringMs: number,
): Promise<Compensation | null> {
  const { rows } = await db.raw<{ rows: CompensationRow[] }>(
    `update compensation set lease_owner = :owner, ring_until = clock_timestamp() + :ringMs * interval '1 millisecond'
      where id = :id and ring = :ring and state = 'queued' and lease_owner is null
      returning ${COLUMNS}`,
    { id, ring, owner, ringMs },
  );
  const row = rows[0];
  return row ? fromRow(row) : null;
}

/**
 * Compensations that a run waits for: those it planned, and those that an earlier run planned for diffs that this one
 * saw again. Held ones are not waited for.
 */
export async function openCountOfRuns(db: Db, runIds: readonly string[]): Promise<number> {
  const { rows } = await db.raw<{ rows: { open: number }[] }>(
    `select count(*)::int as open from (
       select id from compensation where run_id = any(:runs) and ended_at is null and state <> 'held'
       union
       select c.id from diff d join compensation c on c.diff_id = d.id
        where d.run_id = any(:runs) and c.ended_at is null and c.state <> 'held') waiting`,
    { runs: [...runIds] },
  );
  return rows[0]?.open ?? 0;
}

/** A person, or a look, settled what an ended send left unknown: nothing has to wait behind it any more (6.6). */
export async function forgetUnknown(db: Db, diffId: string): Promise<void> {
  await db('compensation')
    .where({ diff_id: diffId, last_unknown: true })
    .whereNotNull('ended_at')
    .update({ last_unknown: false });
}
