import type { DiffKind, Finding } from '../reconcile/record.ts';
import type { Db } from './database.ts';
import { DECISION_STANDS } from './decisions.ts';

/** Findings that are in memory at once, however many a run has. */
const PAGE = 500;

/** Confirmed findings of a run, in key order, page by page: the caller works on one before the next is read. */
export async function* confirmedFindings(db: Db, runId: string): AsyncGenerator<readonly Finding[]> {
  for (let after = ''; ; ) {
    const rows: { business_key: string; finding: Finding }[] = await db('suspect')
      .where({ run_id: runId, state: 'confirmed' })
      .whereRaw('business_key collate "C" > ?', [after])
      .orderByRaw('business_key collate "C"')
      .limit(PAGE)
      .select('business_key', 'finding');
    if (rows.length > 0) yield rows.map((row) => row.finding);
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    after = last.business_key;
  }
}

/** Of a suspect `s`: a person decided on exactly this difference, and the decision stands. */
const DECIDED = `exists (select from diff d
  where d.reconciliation = s.reconciliation and d.business_key = s.business_key and ${DECISION_STANDS}
    and d.source_digest is not distinct from s.finding ->> 'sourceDigest'
    and d.downstream_digest is not distinct from s.finding ->> 'downstreamDigest')`;
/** Of a suspect `s`: a person said that no repair of it comes from here. */
const FAILED = `exists (select from diff d
  where d.reconciliation = s.reconciliation and d.business_key = s.business_key and d.state = 'failed')`;

export interface FindingCount {
  readonly kind: DiffKind;
  readonly found: number;
  /** Of these: dismissed or resolved, and unchanged. */
  readonly decided: number;
  /** Of these: neither decided nor failed, so they may be repaired by themselves. */
  readonly open: number;
}

export async function countFindings(db: Db, runId: string): Promise<FindingCount[]> {
  const { rows } = await db.raw<{ rows: FindingCount[] }>(
    `select kind, count(*)::int as found, (count(*) filter (where decided))::int as decided,
            (count(*) filter (where not decided and not failed))::int as open
       from (select s.finding ->> 'kind' as kind, ${DECIDED} as decided, ${FAILED} as failed
               from suspect s where s.run_id = ? and s.state = 'confirmed') judged
      group by kind`,
    [runId],
  );
  return rows;
}

/** The differing fields of the first mismatched findings that nobody decided on. */
export async function sampleMismatched(
  db: Db,
  runId: string,
  limit: number,
): Promise<Pick<Finding, 'fields'>[]> {
  const { rows } = await db.raw<{ rows: Pick<Finding, 'fields'>[] }>(
    `select s.finding -> 'fields' as fields from suspect s
      where s.run_id = ? and s.state = 'confirmed' and s.finding ->> 'kind' = 'mismatched'
        and not ${DECIDED} and not ${FAILED}
      order by s.business_key collate "C" limit ?`,
    [runId, limit],
  );
  return rows;
}
