import type { EscalationReason, StateName } from '../compensate/state.ts';
import type { Instant } from '../reconcile/instant.ts';
import { type DiffKind, type FieldDifference, type Key, keyFromText, keyText } from '../reconcile/record.ts';
import type { Db } from './database.ts';
import type { DiffState } from './diffs.ts';
import { rowId } from './row-id.ts';

/** A diff as it is listed, with the newest of its compensations. Its records are in `readDiffTimeline`. */
export interface DiffListing {
  readonly id: string;
  readonly reconciliation: string;
  /** The run that saw it last. */
  readonly runId: string | null;
  readonly key: Key;
  readonly kind: DiffKind;
  readonly fields: readonly FieldDifference[];
  readonly recordTime: Instant | null;
  readonly traceId: string;
  readonly state: DiffState;
  readonly timesSeen: number;
  readonly firstSeen: Instant;
  readonly lastSeen: Instant;
  readonly closedAt: Instant | null;
  readonly closedBy: string | null;
  readonly closeReason: string | null;
  readonly dismissedUntil: Instant | null;
  readonly compensation: {
    readonly id: string;
    readonly state: StateName;
    readonly target: string;
    readonly operation: string;
    readonly attempts: number;
    readonly escalation: EscalationReason | null;
    readonly detail: string | null;
    readonly dueAt: Instant;
  } | null;
}

/** Every filter that is given must hold. */
export interface DiffFilters {
  readonly reconciliation?: string;
  readonly states?: readonly DiffState[];
  readonly kinds?: readonly DiffKind[];
  readonly key?: Key;
  /** Why the newest compensation was handed to a person. */
  readonly escalation?: EscalationReason;
  readonly runId?: string;
}

/** Newest first. `after` is the last id of the page before. */
export async function listDiffs(
  db: Db,
  filters: DiffFilters,
  page: { limit: number; after?: string },
): Promise<DiffListing[]> {
  const query = db('diff as d')
    .joinRaw(LATEST_COMPENSATION)
    .orderBy('d.id', 'desc')
    .limit(page.limit)
    .select(db.raw(DIFF_COLUMNS));
  if (filters.reconciliation !== undefined) query.where('d.reconciliation', filters.reconciliation);
  if (filters.states !== undefined) query.whereIn('d.state', filters.states);
  if (filters.kinds !== undefined) query.whereIn('d.kind', filters.kinds);
  if (filters.key !== undefined) query.where('d.business_key', keyText(filters.key));
  if (filters.escalation !== undefined) query.where('c.escalation', filters.escalation);
  if (filters.runId !== undefined) query.where('d.run_id', rowId(filters.runId));
  if (page.after !== undefined) query.where('d.id', '<', rowId(page.after));
  const rows: DiffRow[] = await query;
  return rows.map(fromRow);
}

/** The same form for one diff; null when there is none. */
export async function readDiffListing(db: Db, id: string): Promise<DiffListing | null> {
  const row: DiffRow | undefined = await db('diff as d')
    .joinRaw(LATEST_COMPENSATION)
    .where('d.id', rowId(id))
    .first(db.raw(DIFF_COLUMNS));
  return row === undefined ? null : fromRow(row);
}

const LATEST_COMPENSATION = `left join lateral (
  select id, state, target, operation, attempts, escalation, escalation_detail, due_at
    from compensation where diff_id = d.id order by id desc limit 1) c on true`;

const DIFF_COLUMNS = `d.id, d.reconciliation, d.run_id, d.business_key, d.kind, d.fields, d.record_time, d.trace_id,
  d.state, d.times_seen, d.first_seen, d.last_seen, d.closed_at, d.closed_by, d.close_reason, d.dismissed_until,
  c.id as c_id, c.state as c_state, c.target as c_target, c.operation as c_operation, c.attempts as c_attempts,
  c.escalation as c_escalation, c.escalation_detail as c_detail, c.due_at as c_due_at`;

interface DiffRow {
  id: string;
  reconciliation: string;
  run_id: string | null;
  business_key: string;
  kind: DiffKind;
  fields: FieldDifference[];
  record_time: Instant | null;
  trace_id: string;
  state: DiffState;
  times_seen: number;
  first_seen: Instant;
  last_seen: Instant;
  closed_at: Instant | null;
  closed_by: string | null;
  close_reason: string | null;
  dismissed_until: Instant | null;
  c_id: string | null;
  c_state: StateName;
  c_target: string;
  c_operation: string;
  c_attempts: number;
  c_escalation: EscalationReason | null;
  c_detail: string | null;
  c_due_at: Instant;
}

function fromRow(row: DiffRow): DiffListing {
  return {
    id: row.id,
    reconciliation: row.reconciliation,
    runId: row.run_id,
    key: keyFromText(row.business_key),
    kind: row.kind,
    fields: row.fields,
    recordTime: row.record_time,
    traceId: row.trace_id,
    state: row.state,
    timesSeen: row.times_seen,
    firstSeen: row.first_seen,
    lastSeen: row.last_seen,
    closedAt: row.closed_at,
    closedBy: row.closed_by,
    closeReason: row.close_reason,
    dismissedUntil: row.dismissed_until,
    compensation:
      row.c_id === null
        ? null
        : {
            id: row.c_id,
            state: row.c_state,
            target: row.c_target,
            operation: row.c_operation,
            attempts: row.c_attempts,
            escalation: row.c_escalation,
            detail: row.c_detail,
            dueAt: row.c_due_at,
          },
  };
}
