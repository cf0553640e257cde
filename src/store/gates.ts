import type { Outcome } from '../compensate/action.ts';
import { effectiveRate, type RateState, rateStep, START_RATE } from '../compensate/gate/rate.ts';
import type { SlotAnswer } from '../compensate/gate/slot.ts';
import {
  type GateTiming,
  MINUTE,
  requestSlot,
  type SlotState,
  spacing,
} from '../compensate/gate/watermark.ts';
import { withRevision } from '../compensate/idempotency-key.ts';
import type { Target, Watermark } from '../config/schema.ts';
import { dropAttempt, insertAttempt } from './attempts.ts';
import { type Compensation, changeState } from './compensations.ts';
import { type Db, inTransaction, only } from './database.ts';
import { jsonColumn } from './json-column.ts';

/**
 * The gate: one row per target and purpose, and the lock on it. The arithmetic is pure (compensate/gate); here are
 * the lock, the database clock read after it (rule 6.14), and what is committed with a grant.
 */

type Purpose = 'send' | 'read';

interface GateRow {
  readonly slots: SlotState | null;
  readonly rate: RateState | Record<string, never>;
  readonly override: number | null;
  readonly override_live: boolean;
  readonly held: string | null;
  readonly ceiling: number | null;
  readonly system_identifier: string | null;
}

interface LockedGate {
  readonly nowMs: number;
  readonly slots: SlotState | null;
  readonly rate: RateState;
  readonly override: number | null;
  /** Of the active configuration; a process that works by another one obeys it too. */
  readonly ceiling: number | null;
  readonly held: string | null;
  readonly system: string | null;
  /** This process's monotonic times before and after the store's clock was read (rule 6.14). */
  readonly m0: number;
  readonly m1: number;
}

async function lockGate(trx: Db, gate: string, purpose: Purpose): Promise<LockedGate> {
  const row = (await readLocked(trx, gate, purpose)) ?? (await createGate(trx, gate, purpose));
  // A second statement: within the first, the clock would have been read before the lock was waited for. Timed by
  // itself, so that neither the wait for the lock nor the commit counts against the validity of the slot.
  const m0 = performance.now();
  const { rows } = await trx.raw<{ rows: { now: number; system: string | null; held: string | null }[] }>(
    `select (extract(epoch from clock_timestamp()) * 1000)::float8 as now, system_identifier as system,
            replay_held as held from meta`,
  );
  const m1 = performance.now();
  const store = only(rows);
  return {
    nowMs: store.now,
    m0,
    m1,
    // Slots written by another server are lost state: that clock is not this one (rule 6.15).
    slots: row.system_identifier === store.system ? row.slots : null,
    rate: 'buckets' in row.rate ? (row.rate as RateState) : START_RATE,
    override: row.override_live ? row.override : null,
    ceiling: row.ceiling,
    held: purpose === 'send' ? (row.held ?? store.held) : row.held,
    system: store.system,
  };
}

async function readLocked(trx: Db, gate: string, purpose: Purpose): Promise<GateRow | undefined> {
  return trx('gate')
    .where({ gate, purpose })
    .forUpdate()
    .first(
      'slots',
      'rate',
      'override',
      'held',
      'ceiling',
      'system_identifier',
      trx.raw('coalesce(override_until > clock_timestamp(), override is not null) as override_live'),
    );
}

async function createGate(trx: Db, gate: string, purpose: Purpose): Promise<GateRow> {
  await trx('gate').insert({ gate, purpose }).onConflict(['gate', 'purpose']).ignore();
  const row = await readLocked(trx, gate, purpose);
  if (!row) throw new Error(`gate ${gate} cannot be read back`);
  return row;
}

const ceilingOf = (watermark: Watermark): number | null => (watermark === 'unlimited' ? null : watermark);

/** The lesser of this process's watermark and the active configuration's. */
function lesser(watermark: Watermark, active: number | null): number | null {
  const own = ceilingOf(watermark);
  if (own === null || active === null) return own ?? active;
  return Math.min(own, active);
}

// ------------------------------------------------------------------------------------------------------- sends

export interface Granted {
  readonly kind: 'granted';
  readonly delayMs: number;
  readonly validMs: number;
  /** Monotonic times before and after the store read its clock: the delay counts from a moment between them. */
  readonly m0: number;
  readonly m1: number;
  /** Number of the committed attempt; fences every later write about it. */
  readonly attempt: number;
  readonly idempotencyKey: string;
}

export type SendAnswer = Exclude<SlotAnswer, { kind: 'granted' }> | Granted | { readonly kind: 'gone' };

export interface SendRequest {
  readonly compensation: Compensation;
  readonly gate: string;
  readonly target: Target;
  readonly worker: string;
  readonly timing: GateTiming;
  /** Milliseconds after its deadline before a send counts as lost. */
  readonly leaseMarginMs: number;
}

/**
 * Grants a slot and commits the attempt (number, lease, deadline) in the same transaction (rules 6.8, 6.14). Hold,
 * breaker and cancel are seen here, under the lock; `gone` means that the row is no longer this job's.
 */
export async function grantSend(db: Db, request: SendRequest): Promise<SendAnswer> {
  const { compensation, target, timing } = request;
  return inTransaction(db, async (trx): Promise<SendAnswer> => {
    const gate = await lockGate(trx, request.gate, 'send');
    if (gate.held !== null) return { kind: 'held', reason: gate.held };
    const rate = effectiveRate(gate.rate, lesser(target.watermark, gate.ceiling), gate.override, gate.nowMs);
    const { answer, state } = requestSlot(gate.slots, { nowMs: gate.nowMs, limit: rate.limit, timing });
    if (answer.kind !== 'granted') {
      // A state that was lost and begun anew must stand, or it would begin anew for ever.
      if (state !== gate.slots) await saveSlots(trx, request.gate, 'send', state, gate.system);
      return answer;
    }
    const leaseInMs = answer.delayMs + answer.validMs + target.timeout.answer + request.leaseMarginMs;
    const attempt = compensation.attemptNumber + 1;
    const ours = await changeState(trx, {
      from: compensation,
      event: { type: 'send' },
      values: {
        attempt_number: attempt,
        lease_owner: request.worker,
        lease_until: trx.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [leaseInMs]),
        first_sent_at: trx.raw('coalesce(first_sent_at, clock_timestamp())'),
        last_sent_at: trx.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [answer.delayMs]),
      },
    });
    if (!ours) return { kind: 'gone' };
    await insertAttempt(trx, {
      compensationId: compensation.id,
      number: attempt,
      target: compensation.target,
      worker: request.worker,
      slotInMs: answer.delayMs,
      deadlineInMs: leaseInMs - request.leaseMarginMs,
    });
    await saveSlots(trx, request.gate, 'send', state, gate.system);
    const idempotencyKey = withRevision(compensation.idempotencyKey, compensation.revision);
    return { ...answer, m0: gate.m0, m1: gate.m1, attempt, idempotencyKey };
  });
}

async function saveSlots(
  trx: Db,
  gate: string,
  purpose: Purpose,
  slots: SlotState,
  system: string | null,
): Promise<void> {
  await trx('gate')
    .where({ gate, purpose })
    .update({
      slots: jsonColumn(slots),
      system_identifier: system,
      updated_at: trx.raw('clock_timestamp()'),
    });
}

/** Attempts of a compensation that may have left. */
const FROM_SENT = `from attempt a where a.compensation_id = compensation.id and a.outcome is distinct from 'not-sent'`;
const SENT = `exists (select ${FROM_SENT})`;

/** The slot passed before the call could start: the row goes back to the ledger, and nothing counts against it. */
export async function dropSlot(db: Db, compensation: Compensation, granted: Granted): Promise<void> {
  await inTransaction(db, async (trx) => {
    await dropAttempt(trx, compensation.id, granted.attempt);
    await changeState(trx, {
      from: { id: compensation.id, state: 'sending', attemptNumber: granted.attempt },
      event: { type: 'slot-dropped' },
      // As before the grant: what waits for an earlier send to show (rule 6.10) must not begin to wait anew.
      values: {
        first_sent_at: trx.raw(`case when ${SENT} then compensation.first_sent_at end`),
        last_sent_at: trx.raw(`(select max(a.slot_at) ${FROM_SENT})`),
      },
    });
  });
}

export interface GateFacts {
  readonly breaker: string;
  readonly limit: number | null;
  readonly why: string;
}

/** Feeds an attempt's outcome to the target's rate (rule 6.18). Returns the state of the gate at that moment. */
export async function noteOutcome(
  trx: Db,
  note: { gate: string; target: Target; outcome: Outcome; timing: GateTiming },
): Promise<GateFacts> {
  const gate = await lockGate(trx, note.gate, 'send');
  const before = effectiveRate(gate.rate, ceilingOf(note.target.watermark), gate.override, gate.nowMs);
  const rate = rateStep(gate.rate, rateEvent(note.outcome, note.target), note.target.breaker, gate.nowMs, {
    ceiling: ceilingOf(note.target.watermark),
  });
  await trx('gate')
    .where({ gate: note.gate, purpose: 'send' })
    .update({ rate: jsonColumn(rate) });
  return { breaker: rate.breaker.kind, limit: before.limit, why: before.reason };
}

function rateEvent(outcome: Outcome, target: Target): Parameters<typeof rateStep>[1] {
  if (outcome.code === 'http-429') return { type: 'throttled', retryAfterMs: outcome.retryAfterMs };
  switch (outcome.class) {
    case 'accepted':
    case 'pending':
      return outcome.durationMs > target.breaker.slow ? { type: 'slow' } : { type: 'ok' };
    case 'fatal':
    case 'conflict':
      return { type: 'record-failure' };
    case 'retryable':
    case 'target-down':
    case 'unknown':
      return { type: 'target-failure', retryAfterMs: outcome.retryAfterMs };
  }
}

// ------------------------------------------------------------------------------------------------------- reads

/** A slot for one read call of a target (rule 6.16): reads have a watermark of their own, shared by all processes. */
export async function grantRead(
  db: Db,
  request: { gate: string; reads: Watermark; timing: GateTiming },
): Promise<SlotAnswer> {
  const limit = ceilingOf(request.reads);
  if (limit === null) return { kind: 'granted', delayMs: 0, validMs: request.timing.windowMs };
  return takeSlot(db, request.gate, 'read', () => limit, request.timing);
}

/** A slot for a further call of a running attempt (a module action's second call, a step). */
export async function grantCall(
  db: Db,
  request: { gate: string; target: Target; timing: GateTiming },
): Promise<SlotAnswer> {
  const { watermark } = request.target;
  const limit = (gate: LockedGate) =>
    effectiveRate(gate.rate, lesser(watermark, gate.ceiling), gate.override, gate.nowMs).limit;
  return takeSlot(db, request.gate, 'send', limit, request.timing);
}

async function takeSlot(
  db: Db,
  name: string,
  purpose: Purpose,
  limit: (gate: LockedGate) => number | null,
  timing: GateTiming,
): Promise<SlotAnswer> {
  return inTransaction(db, async (trx) => {
    const gate = await lockGate(trx, name, purpose);
    const { answer, state } = requestSlot(gate.slots, { nowMs: gate.nowMs, limit: limit(gate), timing });
    if (state !== gate.slots) await saveSlots(trx, name, purpose, state, gate.system);
    return answer;
  });
}

// ------------------------------------------------------------------------------------------------- for people

export interface GateStatus {
  readonly ceiling: number | null;
  readonly override: number | null;
  readonly overrideUntil: string | null;
  /** Calls that may start in 60 s now; null is unlimited, 0 is a breaker that is open. */
  readonly limit: number | null;
  readonly why: string;
  readonly breaker: string;
  readonly held: string | null;
  /** Milliseconds until the next slot can be granted at this rate; 0 or less is now. */
  readonly nextSlotInMs: number;
}

export async function gateStatus(
  db: Db,
  gate: string,
  target: Target,
  timing: GateTiming = MINUTE,
): Promise<GateStatus> {
  const { rows } = await db.raw<{
    rows: (GateRow & { override_until: string | null; now: number; replay_held: string | null })[];
  }>(
    `select g.slots, coalesce(g.rate, '{}'::jsonb) as rate, g.override, g.ceiling, g.held, g.override_until, m.replay_held,
            coalesce(g.override_until > clock_timestamp(), g.override is not null) as override_live,
            (extract(epoch from clock_timestamp()) * 1000)::float8 as now
       from meta m left join gate g on g.gate = ? and g.purpose = 'send'`,
    [gate],
  );
  const row = only(rows);
  const rate = 'buckets' in row.rate ? (row.rate as RateState) : START_RATE;
  const override = row.override_live ? row.override : null;
  const ceiling = lesser(target.watermark, row.ceiling);
  const effective = effectiveRate(rate, ceiling, override, row.now);
  return {
    ceiling,
    override,
    overrideUntil: row.override_live ? row.override_until : null,
    limit: effective.limit,
    why: effective.reason,
    breaker: rate.breaker.kind,
    held: row.held ?? row.replay_held,
    nextSlotInMs: row.slots === null ? 0 : row.slots.lastSlotMs + spacing(effective.limit, timing) - row.now,
  };
}

async function updateGate(db: Db, gate: string, values: Record<string, unknown>): Promise<void> {
  const all = { ...values, updated_at: db.raw('clock_timestamp()') };
  await db('gate')
    .insert({ gate, purpose: 'send', ...all })
    .onConflict(['gate', 'purpose'])
    .merge(all);
}

/** Stores the ceilings of the configuration that becomes active; gates it does not name have none any more. */
export async function setCeilings(db: Db, ceilings: ReadonlyMap<string, number | null>): Promise<void> {
  await db('gate').where({ purpose: 'send' }).update({ ceiling: null });
  for (const [gate, ceiling] of ceilings) await updateGate(db, gate, { ceiling });
}

/** Stops all sends of a gate, until it is released. */
export async function holdGate(db: Db, gate: string, reason: string, by: string): Promise<void> {
  await updateGate(db, gate, { held: reason, held_by: by });
}

export async function releaseGate(db: Db, gate: string): Promise<boolean> {
  const changed = await db('gate')
    .where({ gate, purpose: 'send' })
    .whereNotNull('held')
    .update({ held: null, held_by: null });
  return changed === 1;
}

/** A person's watermark below the ceiling (rule 6.17); null clears it. */
export async function overrideWatermark(
  db: Db,
  gate: string,
  override: { perMinute: number; forMs: number | null } | null,
): Promise<void> {
  await updateGate(db, gate, {
    override: override?.perMinute ?? null,
    override_until:
      override === null || override.forMs === null
        ? null
        : db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [override.forMs]),
  });
}

/**
 * The most sends to a target that started in any half-open 60 s within the time looked at, from the committed slots:
 * the evidence for the watermark.
 */
export async function maxSendsInWindow(
  db: Db,
  target: string,
  sinceMs: number,
  windowMs: number,
): Promise<number> {
  const { rows } = await db.raw<{ rows: { most: number }[] }>(
    `select coalesce(max(n), 0)::int as most from (
       select count(*) over (order by slot_at range between current row and :window * interval '1 microsecond' following) as n
         from attempt
        where target = :target and slot_at > clock_timestamp() - :since * interval '1 millisecond'
          and outcome is distinct from 'not-sent') w`,
    // One microsecond less, the column's precision, makes the interval half-open.
    { target, since: sinceMs, window: windowMs * 1000 - 1 },
  );
  return rows[0]?.most ?? 0;
}
