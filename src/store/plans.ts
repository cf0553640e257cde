import type { Instant } from '../reconcile/instant.ts';
import { type DiffKind, type Finding, keyFromText, type SideRecord } from '../reconcile/record.ts';
import { type Db, only } from './database.ts';
import type { DiffState } from './diffs.ts';
import { jsonColumn } from './json-column.ts';
import { rowId } from './row-id.ts';
import type { RunGuard } from './runs.ts';

/** Stored plans: what a run in mode `plan` found and would repair. They have no ledger rows until they are executed. */

/** The records move on: what was planned yesterday says little about today. */
const VALID_FOR = '24 hours';

export interface PlanSummary {
  /** Diffs that executing would send a repair for, by kind. */
  readonly byKind: Readonly<Partial<Record<DiffKind, number>>>;
  /** The same by target. */
  readonly byTarget: Readonly<Record<string, number>>;
  /** Diffs of the run that are no part of the plan. */
  readonly left: {
    /** Only reported: no repair fits them. */
    readonly reported: number;
    /** A repair is under way already. */
    readonly underWay: number;
    /** In front of a person already, or a matter for one. */
    readonly needPerson: number;
  };
}

/** What became of the diffs of a plan when it was executed. */
export interface PlanOutcome {
  /** Compensations inserted. */
  readonly planned: number;
  readonly skipped: {
    /** The records are others by now, or the diff is closed. */
    readonly changed: number;
    /** A person decided on it meanwhile. */
    readonly decided: number;
    readonly underWay: number;
    /** Went to a person instead, or can only be reported now. */
    readonly notPlanned: number;
  };
}

export interface StoredPlan {
  readonly id: string;
  readonly runId: string;
  readonly reconciliation: string;
  readonly summary: PlanSummary;
  readonly createdAt: Instant;
  readonly expiresAt: Instant;
  readonly expired: boolean;
  readonly executedAt: Instant | null;
  readonly executedBy: string | null;
  readonly outcome: PlanOutcome | null;
}

interface PlanRow {
  id: string;
  run_id: string;
  reconciliation: string;
  summary: PlanSummary;
  created_at: Instant;
  expires_at: Instant;
  expired: boolean;
  executed_at: Instant | null;
  executed_by: string | null;
  outcome: PlanOutcome | null;
}

function fromRow(row: PlanRow): StoredPlan {
  return {
    id: row.id,
    runId: row.run_id,
    reconciliation: row.reconciliation,
    summary: row.summary,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    expired: row.expired,
    executedAt: row.executed_at,
    executedBy: row.executed_by,
    outcome: row.outcome,
  };
}

/** Stores the plan of a run. A run has one; a run that concludes once more keeps the one it has. */
export async function insertPlan(
  db: Db,
  plan: { runId: string; reconciliation: string; summary: PlanSummary; diffIds: readonly string[] },
): Promise<void> {
  const [row]: { id: string }[] = await db('plan')
    .insert({
      run_id: plan.runId,
      reconciliation: plan.reconciliation,
      summary: jsonColumn(plan.summary),
      expires_at: db.raw(`clock_timestamp() + interval '${VALID_FOR}'`),
    })
    .onConflict('run_id')
    .ignore()
    .returning('id');
  if (row === undefined) return;
  await db.raw(
    `insert into plan_diff (plan_id, diff_id, source_digest, downstream_digest)
     select ?, id, source_digest, downstream_digest from diff where id = any(?)`,
    [row.id, [...plan.diffIds]],
  );
}

const COLUMNS = '*, expires_at <= clock_timestamp() as expired';

export async function readPlan(db: Db, id: string): Promise<StoredPlan | null> {
  const row: PlanRow | undefined = await db('plan')
    .where({ id: rowId(id) })
    .first(db.raw(COLUMNS));
  return row === undefined ? null : fromRow(row);
}

export async function planOfRun(db: Db, runId: string): Promise<StoredPlan | null> {
  const row: PlanRow | undefined = await db('plan').where({ run_id: runId }).first(db.raw(COLUMNS));
  return row === undefined ? null : fromRow(row);
}

/** The same, locked: of two that execute a plan at once one finds it executed. */
export async function lockPlan(trx: Db, id: string): Promise<StoredPlan | null> {
  const row: PlanRow | undefined = await trx('plan')
    .where({ id: rowId(id) })
    .forUpdate()
    .first(trx.raw(COLUMNS));
  return row === undefined ? null : fromRow(row);
}

export async function endPlan(trx: Db, id: string, by: string, outcome: PlanOutcome): Promise<void> {
  await trx('plan')
    .where({ id })
    .update({
      executed_at: trx.raw('clock_timestamp()'),
      executed_by: by,
      outcome: jsonColumn(outcome),
    });
}

export interface PlannableDiff {
  readonly id: string;
  readonly traceId: string;
  readonly finding: Finding;
}

interface FindingRow {
  id: string;
  trace_id: string;
  business_key: string;
  kind: DiffKind;
  fields: Finding['fields'];
  source_record: SideRecord | null;
  downstream_record: SideRecord | null;
  source_digest: string | null;
  downstream_digest: string | null;
}

const FINDING = `d.id, d.trace_id, d.business_key, d.kind, d.fields, d.source_record, d.downstream_record,
  d.source_digest, d.downstream_digest`;

function plannable(row: FindingRow): PlannableDiff {
  return {
    id: row.id,
    traceId: row.trace_id,
    finding: {
      key: keyFromText(row.business_key),
      kind: row.kind,
      fields: row.fields,
      source: row.source_record,
      downstream: row.downstream_record,
      sourceCount: row.source_record === null ? 0 : 1,
      downstreamCount: row.downstream_record === null ? 0 : 1,
      sourceDigest: row.source_digest,
      downstreamDigest: row.downstream_digest,
    },
  };
}

/** Open diffs that the run saw last, in order of their ids. `after` is the last id of the page before. */
export async function openDiffsOfRun(
  db: Db,
  runId: string,
  page: { limit: number; after: string },
): Promise<PlannableDiff[]> {
  const rows: FindingRow[] = await db('diff as d')
    .where({ 'd.run_id': runId, 'd.state': 'open' })
    .where('d.id', '>', page.after)
    .orderBy('d.id')
    .limit(page.limit)
    .select(db.raw(FINDING));
  return rows.map(plannable);
}

export interface DiffOfPlan extends PlannableDiff {
  readonly state: DiffState;
  /** The records are not those of the plan any more. */
  readonly changed: boolean;
}

/** The diffs of a plan as they are now, in order of their ids, locked against everybody who would change them. */
export async function lockDiffsOfPlan(
  trx: Db,
  planId: string,
  page: { limit: number; after: string },
): Promise<DiffOfPlan[]> {
  const { rows } = await trx.raw<{ rows: (FindingRow & { state: DiffState; changed: boolean })[] }>(
    `select ${FINDING}, d.state,
            (d.source_digest, d.downstream_digest) is distinct from (p.source_digest, p.downstream_digest) as changed
       from plan_diff p join diff d on d.id = p.diff_id
      where p.plan_id = :plan and p.diff_id > :after
      order by p.diff_id limit :limit for no key update of d`,
    { plan: planId, after: page.after, limit: page.limit },
  );
  return rows.map((row) => ({ ...plannable(row), state: row.state, changed: row.changed }));
}

export interface RunOfPlan {
  readonly result: string | null;
  readonly watermark: number | null;
  readonly guard: RunGuard | null;
}

export async function lockRunOfPlan(trx: Db, runId: string): Promise<RunOfPlan> {
  const rows: RunOfPlan[] = await trx('run')
    .where({ id: runId })
    .forUpdate()
    .select('result', 'watermark', 'guard');
  return only(rows);
}

/** A person goes on with what the guard saw in the run. */
export async function releaseGuard(trx: Db, runId: string, reason: string): Promise<void> {
  await trx('run')
    .where({ id: runId })
    .whereNotNull('guard')
    .update({ guard: trx.raw(`guard || jsonb_build_object('released', ?::text)`, [reason]) });
}
