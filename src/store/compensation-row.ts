import type { Payload } from '../compensate/action.ts';
import type { EscalationReason, StateName } from '../compensate/state.ts';
import type { Instant } from '../reconcile/instant.ts';
import { type Key, keyFromText } from '../reconcile/record.ts';

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
  /** Since the first of the looks in a row that could not decide; null when the last one did. */
  readonly undecidedForMs: number | null;
  /** Accepted, never visible, and followed by one more round (rule 6.11). */
  readonly notTaken: boolean;
  readonly endedMsAgo: number | null;
  /** Since the oldest send whose outcome is not settled; null when there is none. */
  readonly unknownForMs: number | null;
  readonly createdAt: Instant;
  /** The run's own ceiling, in sends per window; null where only the target's counts. */
  readonly runWatermark: number | null;
}

/** As the store gives it. */
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
  undecided_for_ms: number | null;
  not_taken: boolean;
  ended_ms_ago: number | null;
  unknown_for_ms: number | null;
  created_at: Instant;
  run_watermark: number | null;
}

const ago = (column: string) => `(extract(epoch from clock_timestamp() - ${column}) * 1000)::float8`;
/** What `fromRow` reads. */
export const COLUMNS = `id, diff_id, run_id, reconciliation, repair, side, target, order_scope, business_key, operation,
  idempotency_key, revision, fingerprint, payload, state, escalation, escalation_detail, last_unknown, attempts, attempt_number, ring,
  trace_id, created_at, ${ago('first_sent_at')} as first_sent_ms_ago, ${ago('last_sent_at')} as last_sent_ms_ago,
  not_taken, ${ago('undecided_since')} as undecided_for_ms,
  ${ago('ended_at')} as ended_ms_ago,
  ${ago('unknown_since')} as unknown_for_ms,
  (select watermark from run where run.id = run_id) as run_watermark`;

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
    undecidedForMs: row.undecided_for_ms,
    notTaken: row.not_taken,
    endedMsAgo: row.ended_ms_ago,
    unknownForMs: row.unknown_for_ms,
    createdAt: row.created_at,
    runWatermark: row.run_watermark,
  };
}
