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
  readonly createdAt: Instant;
}

interface CompensationRow {
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
  created_at: Instant;
}

const ago = (column: string) => `(extract(epoch from clock_timestamp() - ${column}) * 1000)::float8`;
const COLUMNS = `id, diff_id, run_id, reconciliation, repair, side, target, order_scope, business_key, operation,
  idempotency_key, revision, fingerprint, payload, state, escalation, escalation_detail, last_unknown, attempts, attempt_number, ring,
  trace_id, created_at, ${ago('first_sent_at')} as first_sent_ms_ago, ${ago('last_sent_at')} as last_sent_ms_ago,
  ${ago('target_down_since')} as target_down_ms,
  ${ago('ended_at')} as ended_ms_ago`;

function fromRow(row: CompensationRow): Compensation {
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
    createdAt: row.created_at,
  };
}

export interface NewCompensation {
  readonly diffId: string;
  readonly runId: string | null;
  readonly configRevision: number | null;
  readonly reconciliation: string;
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
  readonly traceId: string;
}

/** Inserts a planned compensation. A repeated (key, revision) is refused by the database; the caller asked first. */
export async function insertCompensation(db: Db, planned: NewCompensation): Promise<string> {
  const [row] = await db('compensation')
    .insert({
      diff_id: planned.diffId,
      run_id: planned.runId,
      config_revision: planned.configRevision,
      reconciliation: planned.reconciliation,
      repair: planned.repair,
      side: planned.side,
      target: planned.target,
      order_scope: planned.orderScope,
      business_key: keyText(planned.key),
      operation: planned.operation,
      idempotency_key: planned.idempotencyKey,
      revision: planned.revision,
      fingerprint: planned.fingerprint,
      payload: jsonColumn(planned.payload),
      trace_id: planned.traceId,
    })
    .returning('id');
  return row.id;
}

/** All compensations that ever had an idempotency key, newest revision last; locked against a concurrent planner. */
export async function compensationHistory(db: Db, idempotencyKey: string): Promise<Compensation[]> {
  await db.raw('select pg_advisory_xact_lock(hashtextextended(?, 1))', [idempotencyKey]);
  const rows: CompensationRow[] = await db('compensation')
    .where({ idempotency_key: idempotencyKey })
    .orderBy('revision')
    .select(db.raw(COLUMNS));
  return rows.map(fromRow);
}

export async function readCompensation(db: Db, id: string): Promise<Compensation | null> {
  const row: CompensationRow | undefined = await db('compensation').where({ id }).first(db.raw(COLUMNS));
  return row ? fromRow(row) : null;
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
      ring_until: null,
      lease_until: null,
      lease_owner: null,
      ...change.values,
    });
  return changed === 1;
}

/**
 * Rule 6.6: planned rows that are first in line for their key become ready, oldest first. Two promoters at once are
 * kept apart by the unique index and by skipping locked rows; what one of them skips, the next sweep promotes.
 */
export async function promotePlanned(db: Db, limit: number): Promise<number> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `with first as (
       select c.id from compensation c
        where c.state = 'planned'
          and not exists (select from compensation o
                           where o.target = c.target and o.order_scope = c.order_scope
                             and o.business_key = c.business_key and o.id <> c.id
                             and (o.state in ('ready', 'queued', 'sending', 'retrying', 'deferred', 'unknown', 'applied')
                                  or (o.state = 'escalated' and o.last_unknown)
                                  or (o.state in ('planned', 'held') and o.id < c.id)))
        order by c.id limit :limit for update skip locked)
     update compensation set state = 'ready', due_at = clock_timestamp()
       from first where compensation.id = first.id returning compensation.id`,
    { limit },
  );
  return rows.length;
}

export interface Dispatched {
  readonly id: string;
  readonly ring: number;
  readonly retry: boolean;
}

/**
 * Moves due rows of a target from the ledger to "queued", each with a new ring number (rule 6.19). Retries get at
 * least one place and at most one in five while fresh work is ready; idle shares go to whoever waits (rule 6.13).
 */
export async function dispatchDue(
  db: Db,
  target: string,
  places: number,
  ringMs: number,
): Promise<Dispatched[]> {
  if (places < 1) return [];
  const take = async (states: readonly StateName[], limit: number): Promise<string[]> => {
    const { rows } = await db.raw<{ rows: { id: string }[] }>(
      `select id from compensation
        where target = ? and state = any(?) and due_at <= clock_timestamp()
        order by id limit ? for update skip locked`,
      [target, [...states], limit],
    );
    return rows.map((row) => row.id);
  };
  const retries = await take(['retrying'], places);
  const fresh = await take(['ready', 'deferred'], places);
  const retryPlaces = Math.max(places - fresh.length, Math.ceil(places / 5));
  const chosenRetries = retries.slice(0, Math.min(retryPlaces, places));
  const chosenFresh = fresh.slice(0, places - chosenRetries.length);
  if (chosenRetries.length + chosenFresh.length === 0) return [];
  const { rows } = await db.raw<{ rows: { id: string; ring: number }[] }>(
    `update compensation set state = 'queued', ring = ring + 1,
            ring_until = clock_timestamp() + ? * interval '1 millisecond'
      where id = any(?) returning id, ring`,
    [ringMs, [...chosenRetries, ...chosenFresh]],
  );
  const retry = new Set(chosenRetries);
  return rows
    .map((row) => ({ id: row.id, ring: row.ring, retry: retry.has(row.id) }))
    .sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
}

export interface TargetLoad {
  readonly queued: number;
  readonly sending: number;
}

export async function targetLoads(db: Db): Promise<Map<string, TargetLoad>> {
  const { rows } = await db.raw<{ rows: { target: string; queued: number; sending: number }[] }>(
    `select target, (count(*) filter (where state = 'queued'))::int as queued,
            (count(*) filter (where state = 'sending'))::int as sending
       from compensation where state in ('queued', 'sending') group by target`,
  );
  return new Map(rows.map((row) => [row.target, { queued: row.queued, sending: row.sending }]));
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

export async function postponeSettle(db: Db, id: string, afterMs: number): Promise<void> {
  await db('compensation')
    .where({ id })
    .whereIn('state', ['applied', 'unknown'])
    .update({ due_at: db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [afterMs]) });
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
     update compensation c set state = 'unknown', last_unknown = true, attempts = attempts + 1,
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

/** Compensations of a run that have not ended, by state. */
export async function openCountOfRuns(db: Db, runIds: readonly string[]): Promise<number> {
  const { rows } = await db.raw<{ rows: { open: number }[] }>(
    `select count(*)::int as open from compensation where run_id = any(?) and ended_at is null and state <> 'held'`,
    [[...runIds]],
  );
  return rows[0]?.open ?? 0;
}

/** Targets that have anything to dispatch now. */
export async function targetsWithDueWork(db: Db): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { target: string }[] }>(
    `select distinct target from compensation
      where state in ('ready', 'retrying', 'deferred') and due_at <= clock_timestamp()`,
  );
  return rows.map((row) => row.target);
}

/** A person, or a look, settled what an escalated send left unknown: nothing has to wait behind it any more (6.6). */
export async function forgetUnknown(db: Db, diffId: string): Promise<void> {
  await db('compensation')
    .where({ diff_id: diffId, state: 'escalated', last_unknown: true })
    .update({ last_unknown: false });
}
