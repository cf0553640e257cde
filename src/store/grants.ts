import { effectiveRate } from '../compensate/gate/rate.ts';
import type { SlotAnswer } from '../compensate/gate/slot.ts';
import { type GateTiming, requestSlot } from '../compensate/gate/watermark.ts';
import { withRevision } from '../compensate/idempotency-key.ts';
import type { Target, Watermark } from '../config/schema.ts';
import { dropAttempt, insertAttempt } from './attempts.ts';
import { type Compensation, changeState } from './compensations.ts';
import { type Db, inTransaction } from './database.ts';
import { ceilingOf, type LockedGate, lesser, lockGate, type Purpose, saveSlots } from './gate-row.ts';
import { askRunGate, type PacedRow } from './run-gate.ts';

/** Slots of a gate: for a send, with what is committed beside it, and for other calls. */

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

export type SendAnswer =
  | Exclude<SlotAnswer, { kind: 'granted' }>
  | Granted
  | { readonly kind: 'gone' }
  /** The run's own gate has its next slot after this. */
  | { readonly kind: 'paced'; readonly delayMs: number };

export interface SendRequest {
  readonly compensation: Compensation;
  readonly gate: string;
  readonly target: Target;
  readonly worker: string;
  readonly timing: GateTiming;
  /** Milliseconds after its deadline before a send counts as lost. */
  readonly leaseMarginMs: number;
  /** A slot further ahead is not taken: the look would be too old by then (rule 6.9). Left out: none is too far. */
  readonly mostAheadMs?: number;
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
    const tooFarMs = answer.delayMs - (request.mostAheadMs ?? answer.delayMs);
    if (tooFarMs > 0) return { kind: 'wait', delayMs: tooFarMs };
    const pacedMs = await askRunGate(trx, compensation, state.lastSlotMs, timing);
    if (pacedMs !== null) return { kind: 'paced', delayMs: pacedMs };
    const leaseInMs = answer.delayMs + answer.validMs + target.timeout.answer + request.leaseMarginMs;
    const attempt = compensation.attemptNumber + 1;
    const ours = await changeState(trx, {
      from: compensation,
      event: { type: 'send' },
      values: {
        attempt_number: attempt,
        lease_owner: request.worker,
        // A look decided, or nothing would be sent.
        undecided_since: null,
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

// ------------------------------------------------------------------------------------------------ other calls

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
  request: { gate: string; target: Target; timing: GateTiming; run: PacedRow },
): Promise<SlotAnswer> {
  const { watermark } = request.target;
  const limit = (gate: LockedGate) =>
    effectiveRate(gate.rate, lesser(watermark, gate.ceiling), gate.override, gate.nowMs).limit;
  return takeSlot(db, request.gate, 'send', limit, request.timing, request.run);
}

async function takeSlot(
  db: Db,
  name: string,
  purpose: Purpose,
  limit: (gate: LockedGate) => number | null,
  timing: GateTiming,
  run: PacedRow = { runId: null, runWatermark: null },
): Promise<SlotAnswer> {
  return inTransaction(db, async (trx) => {
    const gate = await lockGate(trx, name, purpose);
    const { answer, state } = requestSlot(gate.slots, { nowMs: gate.nowMs, limit: limit(gate), timing });
    if (answer.kind === 'granted') {
      const pacedMs = await askRunGate(trx, run, state.lastSlotMs, timing);
      if (pacedMs !== null) return { kind: 'wait', delayMs: pacedMs };
    }
    if (state !== gate.slots) await saveSlots(trx, name, purpose, state, gate.system);
    return answer;
  });
}
