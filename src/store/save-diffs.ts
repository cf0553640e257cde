import { type Finding, keyText } from '../reconcile/record.ts';
import type { Db } from './database.ts';
import { DECISION_STANDS, lapseDecisions } from './decisions.ts';
import { recordDiffEvents } from './diffs.ts';
import { jsonColumn } from './json-column.ts';

/** How a finding met the diffs that are stored already. */
export type SavedDiff =
  | { readonly kind: 'opened' | 'seen-again'; readonly id: string; readonly traceId: string }
  /** A person marked it as not repairable from here. */
  | { readonly kind: 'failed'; readonly id: string }
  /** A person decided on exactly this difference, and the decision stands (rule 6.5). */
  | { readonly kind: 'decided'; readonly id: string };

export interface FindingToSave {
  readonly finding: Finding;
  /** For a diff that is new; one that is open keeps its own. */
  readonly traceId: string;
}

interface SavedRow {
  readonly business_key: string;
  readonly id: string;
  readonly trace_id: string;
  readonly state?: string;
}

/**
 * Stores confirmed findings, each as a new diff or as another sighting of the open one; the results are in the order
 * of the findings. A key occurs once. Call inside the run's transaction.
 */
export async function saveDiffs(
  db: Db,
  run: { id: string; reconciliation: string },
  findings: readonly FindingToSave[],
  relookMs: number,
): Promise<SavedDiff[]> {
  if (findings.length === 0) return [];
  const decided = await standingDecisions(db, run.reconciliation, findings);
  const undecided = findings.filter(({ finding }) => !decided.has(keyText(finding.key)));
  const seen = await seeAgain(db, run, undecided, relookMs);
  const fresh = undecided.filter(({ finding }) => !seen.has(keyText(finding.key)));
  const keys = fresh.map(({ finding }) => finding.key);
  await lapseDecisions(db, run.reconciliation, keys, 'the records differ otherwise, or its time is over');
  const opened = await open(db, run, fresh, relookMs);
  await recordDiffEvents(
    db,
    undecided.map(({ finding }) => {
      const key = keyText(finding.key);
      const detail = { run: run.id, kind: finding.kind };
      return seen.has(key)
        ? { diffId: idOf(seen, key), event: 'seen-again', detail }
        : { diffId: idOf(opened, key), event: 'opened', detail };
    }),
  );
  return findings.map(({ finding }): SavedDiff => {
    const key = keyText(finding.key);
    const decision = decided.get(key);
    if (decision) return { kind: 'decided', id: decision.id };
    const again = seen.get(key);
    if (again?.state === 'failed') return { kind: 'failed', id: again.id };
    if (again) return { kind: 'seen-again', id: again.id, traceId: again.trace_id };
    const fresh = opened.get(key);
    if (!fresh) throw new Error(`the diff of ${key} was not stored`);
    return { kind: 'opened', id: fresh.id, traceId: fresh.trace_id };
  });
}

function idOf(rows: ReadonlyMap<string, SavedRow>, key: string): string {
  const row = rows.get(key);
  if (!row) throw new Error(`the diff of ${key} was not stored`);
  return row.id;
}

const byKey = (rows: readonly SavedRow[]) => new Map(rows.map((row) => [row.business_key, row]));

/** Standing decisions on the very digests that were seen now (rule 6.5). */
async function standingDecisions(db: Db, reconciliation: string, findings: readonly FindingToSave[]) {
  const { rows } = await db.raw<{ rows: SavedRow[] }>(
    `select distinct on (d.business_key) d.business_key, d.id, d.trace_id
       from jsonb_to_recordset(?::jsonb) as f(business_key text, source_digest text, downstream_digest text)
       join diff d on d.reconciliation = ? and d.business_key = f.business_key
      where ${DECISION_STANDS}
        and d.source_digest is not distinct from f.source_digest
        and d.downstream_digest is not distinct from f.downstream_digest
      order by d.business_key, d.id desc`,
    [asRecords(findings), reconciliation],
  );
  return byKey(rows);
}

async function seeAgain(
  db: Db,
  run: { id: string; reconciliation: string },
  findings: readonly FindingToSave[],
  relookMs: number,
) {
  const { rows } = await db.raw<{ rows: SavedRow[] }>(
    `update diff d
        set run_id = :run, kind = f.kind, fields = f.fields, source_record = f.source_record,
            downstream_record = f.downstream_record, source_digest = f.source_digest,
            downstream_digest = f.downstream_digest, times_seen = d.times_seen + 1, last_seen = clock_timestamp(),
            next_look = clock_timestamp() + :relookMs * interval '1 millisecond'
       from jsonb_to_recordset(:findings::jsonb) as f(business_key text, kind text, fields jsonb, source_record jsonb,
            downstream_record jsonb, source_digest text, downstream_digest text)
      where d.reconciliation = :reconciliation and d.business_key = f.business_key and d.state in ('open', 'failed')
      returning d.business_key, d.id, d.trace_id, d.state`,
    { run: run.id, reconciliation: run.reconciliation, relookMs, findings: asRecords(findings) },
  );
  return byKey(rows);
}

async function open(
  db: Db,
  run: { id: string; reconciliation: string },
  findings: readonly FindingToSave[],
  relookMs: number,
) {
  const { rows } = await db.raw<{ rows: SavedRow[] }>(
    `insert into diff (run_id, reconciliation, business_key, kind, fields, source_record, downstream_record,
                       source_digest, downstream_digest, record_time, not_before, trace_id, next_look)
     select :run, :reconciliation, f.business_key, f.kind, f.fields, f.source_record, f.downstream_record,
            f.source_digest, f.downstream_digest, f.record_time,
            (select s.not_before from suspect s where s.run_id = :run and s.business_key = f.business_key),
            f.trace_id, clock_timestamp() + :relookMs * interval '1 millisecond'
       from rows from (jsonb_to_recordset(:findings::jsonb) as (business_key text, kind text, fields jsonb,
            source_record jsonb, downstream_record jsonb, source_digest text, downstream_digest text,
            record_time timestamptz, trace_id text)) with ordinality as f
      order by f.ordinality
     returning business_key, id, trace_id`,
    { run: run.id, reconciliation: run.reconciliation, relookMs, findings: asRecords(findings) },
  );
  return byKey(rows);
}

function asRecords(findings: readonly FindingToSave[]): string | null {
  return jsonColumn(
    findings.map(({ finding, traceId }) => ({
      business_key: keyText(finding.key),
      kind: finding.kind,
      fields: finding.fields,
      source_record: finding.source,
      downstream_record: finding.downstream,
      source_digest: finding.sourceDigest,
      downstream_digest: finding.downstreamDigest,
      record_time: finding.source?.time ?? finding.downstream?.time ?? null,
      trace_id: traceId,
    })),
  );
}
