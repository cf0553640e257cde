import type { Payload } from '../compensate/action.ts';
import {
  type CompensationEvent,
  type EscalationReason,
  type StateName,
  transition,
} from '../compensate/state.ts';
import type { Instant } from '../reconcile/instant.ts';
import { type Key, keyFromText, keyText } from '../reconcile/record.ts';
import type { Db } from './database.ts';
import { jsonColumn } from './json-column.ts';

/** A row of the ledger, as the flow needs it. */
export interface Compensation {
  readonly id: string;
  readonly diffId: string;
  readonly runId: string | null;
  readonly reconciliation: string;
  /** Which repair of the configuration: `missing`, `mismatched.0`. */
  readonly repair: string;
  readonly side: 'downstream' | 'source';
  readonly target: string;
  readonly orderScope: string;
  readonly key: Key;
  readonly operation: string;
  readonly idempotencyKey: string;
  readonly revision: number;
  readonly fingerprint: string;
  readonly payload: Payload;
  readonly state: StateName;
  readonly escalation: EscalationReason | null;
  readonly escalationDetail: string | null;
  readonly lastUnknown: boolean;
  /** Attempts that count against the limit. */
  readonly attempts: number;
  /** Number of the latest attempt, counted or not; fences every later write. */
  readonly attemptNumber: number;
  readonly ring: number;
  readonly traceId: string;
  readonly firstSentMsAgo: number | null;
  readonly lastSentMsAgo: number | null;
  readonly targetDownMs: number | null;
  readonly endedMsAgo: number | null;
  /** Since the oldest send whose outcome is not settled; null when there is none. */
  readonly unknownForMs: number | null;
  readonly createdAt: Instant;
}

export interface CompensationRow {
  id: string;
  diff_id: string;
  run_id: string | null;
  reconciliation: string;
  repair: string;
  side: 'downstream' | 'source';
  target: string;
  order_scope: string;
  business_key: string;
  operation: string;
  idempotency_key: string;
  revision: number;
  fingerprint: string;
  payload: Payload;
  state: StateName;
  escalation: EscalationReason | null;
  escalation_detail: string | null;
  last_unknown: boolean;
  attempts: number;
  attempt_number: number;
  ring: number;
  trace_id: string;
  first_sent_ms_ago: number | null;
  last_sent_ms_ago: number | null;
  target_down_ms: number | null;
  ended_ms_ago: number | null;
  unknown_for_ms: number | null;
  created_at: Instant;
}

const ago = (column: string) => `(extract(epoch from clock_timestamp() - ${column}) * 1000)::float8`;
/** What `fromRow` reads. */
export const COLUMNS = `id, diff_id, run_id, reconciliation, repair, side, target, order_scope, business_key, operation,
  idempotency_key, revision, fingerprint, payload, state, escalation, escalation_detail, last_unknown, attempts, attempt_number, ring,
  trace_id, created_at, ${ago('first_sent_at')} as first_sent_ms_ago, ${ago('last_sent_at')} as last_sent_ms_ago,
  ${ago('target_down_since')} as target_down_ms,
  ${ago('ended_at')} as ended_ms_ago,
  ${ago('unknown_since')} as unknown_for_ms`;

export function fromRow(row: CompensationRow): Compensation {
  return {
    id: row.id,
    diffId: row.diff_id,
    runId: row.run_id,
    reconciliation: row.reconciliation,
    repair: row.repair,
    side: row.side,
    target: row.target,
    orderScope: row.order_scope,
    key: keyFromText(row.business_key),
    operation: row.operation,
    idempotencyKey: row.idempotency_key,
    revision: row.revision,
    fingerprint: row.fingerprint,
    payload: row.payload,
    state: row.state,
    escalation: row.escalation,
    escalationDetail: row.escalation_detail,
    lastUnknown: row.last_unknown,
    attempts: row.attempts,
    attemptNumber: row.attempt_number,
    ring: row.ring,
    traceId: row.trace_id,
    firstSentMsAgo: row.first_sent_ms_ago,
    lastSentMsAgo: row.last_sent_ms_ago,
    targetDownMs: row.target_down_ms,
    endedMsAgo: row.ended_ms_ago,
    unknownForMs: row.unknown_for_ms,
    createdAt: row.created_at,
  };
}

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
