import type { ErrorRecord, Outcome, Payload } from '../compensate/action.ts';
import type { EscalationReason, StateName } from '../compensate/state.ts';
import type { Instant } from '../reconcile/instant.ts';
import { type DiffKind, keyText, type SideRecord } from '../reconcile/record.ts';
import type { Db } from './database.ts';
import type { DiffState } from './diffs.ts';
import { type DiffListing, readDiffListing } from './list-diffs.ts';

/** One diff whole, for `trueup diff ID` and the page. */
export interface DiffTimeline {
  readonly diff: DiffListing & {
    readonly source: SideRecord | null;
    readonly downstream: SideRecord | null;
    readonly sourceDigest: string | null;
    readonly downstreamDigest: string | null;
    readonly nextLook: Instant;
  };
  /** Oldest first. */
  readonly compensations: readonly TimelineCompensation[];
  /** Everything that happened, in order of time. */
  readonly timeline: readonly TimelineEntry[];
  /** Earlier diffs of the same key that are still kept, newest first, at most 20. */
  readonly previous: readonly PreviousDiff[];
}

export interface TimelineCompensation {
  readonly id: string;
  readonly runId: string | null;
  readonly repair: string;
  readonly side: 'downstream' | 'source';
  readonly target: string;
  readonly operation: string;
  readonly idempotencyKey: string;
  readonly revision: number;
  readonly payload: Payload;
  readonly state: StateName;
  readonly escalation: EscalationReason | null;
  readonly detail: string | null;
  readonly attempts: number;
  readonly dueAt: Instant;
  readonly traceId: string;
  readonly createdAt: Instant;
  readonly endedAt: Instant | null;
}

export interface TimelineAttempt {
  readonly entry: 'attempt';
  /** When the call started; its slot, when it is under way or was never recorded. */
  readonly at: Instant;
  readonly compensationId: string;
  readonly number: number;
  readonly target: string;
  readonly worker: string;
  readonly counted: boolean;
  readonly slotAt: Instant;
  readonly deadline: Instant;
  readonly endedAt: Instant | null;
  /** Null while it is under way. */
  readonly outcome: Outcome['class'] | 'not-sent' | 'lease-lost' | null;
  readonly code: string | null;
  readonly request: unknown;
  readonly answer: unknown;
  readonly error: ErrorRecord | null;
  /** The state of the system then: breaker, rate, in flight, backlog, version. */
  readonly system: unknown;
  readonly durationMs: number | null;
}

export type TimelineEntry =
  | TimelineAttempt
  | {
      readonly entry: 'event';
      readonly at: Instant;
      readonly compensationId: string | null;
      readonly event: string;
      readonly detail: unknown;
    }
  | { readonly entry: 'planned'; readonly at: Instant; readonly compensationId: string };

export interface PreviousDiff {
  readonly id: string;
  readonly kind: DiffKind;
  readonly state: DiffState;
  readonly firstSeen: Instant;
  readonly closedAt: Instant | null;
  readonly closedBy: string | null;
  readonly closeReason: string | null;
}

/** Null when there is no such diff, or none any more. Throws `TRU_NO_ID` for text that is no id. */
export async function readDiffTimeline(db: Db, id: string): Promise<DiffTimeline | null> {
  const listing = await readDiffListing(db, id);
  if (listing === null) return null;
  const records = await db('diff')
    .where({ id })
    .first('source_record', 'downstream_record', 'source_digest', 'downstream_digest', 'next_look');
  if (records === undefined) return null;
  const compensations = await readCompensations(db, id);
  const attempts = await readAttempts(db, id);
  const events = await readEvents(db, id);
  return {
    diff: {
      ...listing,
      source: records.source_record,
      downstream: records.downstream_record,
      sourceDigest: records.source_digest,
      downstreamDigest: records.downstream_digest,
      nextLook: records.next_look,
    },
    compensations,
    timeline: inTimeOrder([
      ...compensations.map(
        (c): TimelineEntry => ({ entry: 'planned', at: c.createdAt, compensationId: c.id }),
      ),
      ...attempts,
      ...events,
    ]),
    previous: await readPrevious(db, listing),
  };
}

function inTimeOrder(entries: readonly TimelineEntry[]): TimelineEntry[] {
  return entries.toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

async function readCompensations(db: Db, diffId: string): Promise<TimelineCompensation[]> {
  const rows = await db('compensation').where({ diff_id: diffId }).orderBy('id').select();
  return rows.map((row) => ({
    id: row.id,
    runId: row.run_id,
    repair: row.repair,
    side: row.side,
    target: row.target,
    operation: row.operation,
    idempotencyKey: row.idempotency_key,
    revision: row.revision,
    payload: row.payload,
    state: row.state,
    escalation: row.escalation,
    detail: row.escalation_detail,
    attempts: row.attempts,
    dueAt: row.due_at,
    traceId: row.trace_id,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  }));
}

async function readAttempts(db: Db, diffId: string): Promise<TimelineAttempt[]> {
  const rows = await db('attempt as a')
    .join('compensation as c', 'c.id', 'a.compensation_id')
    .where('c.diff_id', diffId)
    .orderBy(['a.compensation_id', 'a.number'])
    .select('a.*');
  return rows.map((row) => ({
    entry: 'attempt',
    at: row.started_at ?? row.slot_at,
    compensationId: row.compensation_id,
    number: row.number,
    target: row.target,
    worker: row.worker,
    counted: row.counted,
    slotAt: row.slot_at,
    deadline: row.deadline,
    endedAt: row.ended_at,
    outcome: row.outcome,
    code: row.error_code,
    request: row.request,
    answer: row.answer,
    error: row.error,
    system: row.system,
    durationMs: row.duration_ms,
  }));
}

/** Events that an earlier release wrote under another name. */
const EARLIER_NAMES: ReadonlyMap<string, string> = new Map([['escalate', 'escalated']]);

async function readEvents(db: Db, diffId: string): Promise<TimelineEntry[]> {
  const rows = await db('diff_event').where({ diff_id: diffId }).orderBy('id').select();
  return rows.map((row) => ({
    entry: 'event',
    at: row.at,
    compensationId: row.compensation_id,
    event: EARLIER_NAMES.get(row.event) ?? row.event,
    detail: row.detail,
  }));
}

async function readPrevious(db: Db, diff: DiffListing): Promise<PreviousDiff[]> {
  const rows = await db('diff')
    .where({ reconciliation: diff.reconciliation, business_key: keyText(diff.key) })
    .where('id', '<', diff.id)
    .orderBy('id', 'desc')
    .limit(20)
    .select();
  return rows.map((row) => ({
    id: row.id,
    kind: row.kind,
    state: row.state,
    firstSeen: row.first_seen,
    closedAt: row.closed_at,
    closedBy: row.closed_by,
    closeReason: row.close_reason,
  }));
}
