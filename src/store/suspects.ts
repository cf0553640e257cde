import type { Instant } from '../reconcile/instant.ts';
import { type Finding, type Key, keyFromText, keyText, type Window } from '../reconcile/record.ts';
import type { Db } from './database.ts';
import { jsonColumn } from './json-column.ts';

export interface WaitingSuspect {
  readonly id: string;
  readonly key: Key;
  readonly kind: Finding['kind'];
  readonly sourceDigest: string | null;
  readonly downstreamDigest: string | null;
  readonly looks: number;
}

/** How a suspect's recheck ended. */
export type SuspectEnd =
  | { readonly id: string; readonly state: 'confirmed'; readonly finding: Finding }
  | { readonly id: string; readonly state: 'healed' }
  | {
      readonly id: string;
      readonly state: 'undecided';
      readonly reason: string;
      readonly finding: Finding | null;
    }
  | {
      readonly id: string;
      readonly state: 'waiting';
      readonly afterMs: number;
      readonly looks: number;
      readonly sourceDigest: string | null;
      readonly downstreamDigest: string | null;
    };

const INSERT_BATCH = 1000;

interface Chunk {
  readonly run: { readonly id: string; readonly reconciliation: string };
  readonly window: Window;
}

export async function insertSuspects(
  db: Db,
  { run, window }: Chunk,
  findings: readonly Finding[],
  delayMs: number,
): Promise<void> {
  for (let start = 0; start < findings.length; start += INSERT_BATCH) {
    const rows = findings.slice(start, start + INSERT_BATCH).map((finding) => ({
      run_id: run.id,
      reconciliation: run.reconciliation,
      business_key: keyText(finding.key),
      kind: finding.kind,
      record_time: finding.source?.time ?? finding.downstream?.time ?? null,
      not_before: window.from,
      source_digest: finding.sourceDigest,
      downstream_digest: finding.downstreamDigest,
      due_at: db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [delayMs]),
    }));
    // A chunk that is read again after a crash, or a key seen by two chunks, is one suspect.
    await db('suspect').insert(rows).onConflict(['run_id', 'business_key']).ignore();
  }
}

export async function insertUndecided(
  db: Db,
  { run, window }: Chunk,
  undecided: readonly { key: Key; reason: string; time: Instant | null }[],
): Promise<void> {
  for (let start = 0; start < undecided.length; start += INSERT_BATCH) {
    const rows = undecided.slice(start, start + INSERT_BATCH).map(({ key, reason, time }) => ({
      run_id: run.id,
      reconciliation: run.reconciliation,
      business_key: keyText(key),
      kind: 'mismatched',
      record_time: time,
      not_before: window.from,
      state: 'undecided',
      reason,
      due_at: db.raw('clock_timestamp()'),
    }));
    await db('suspect').insert(rows).onConflict(['run_id', 'business_key']).ignore();
  }
}

export async function dueSuspects(db: Db, runId: string, limit: number): Promise<WaitingSuspect[]> {
  const rows = await db('suspect')
    .where({ run_id: runId, state: 'waiting' })
    .where('due_at', '<=', db.raw('clock_timestamp()'))
    .orderBy('id')
    .limit(limit)
    .select('id', 'business_key', 'kind', 'source_digest', 'downstream_digest', 'looks');
  return rows.map((row) => ({
    id: row.id,
    key: keyFromText(row.business_key),
    kind: row.kind,
    sourceDigest: row.source_digest,
    downstreamDigest: row.downstream_digest,
    looks: row.looks,
  }));
}

/** Milliseconds until the next waiting suspect of a run is due; null when none waits. */
export async function nextSuspectDue(db: Db, runId: string): Promise<number | null> {
  const { rows } = await db.raw<{ rows: { wait: number | null }[] }>(
    `select (extract(epoch from min(due_at) - clock_timestamp()) * 1000)::float8 as wait
       from suspect where run_id = ? and state = 'waiting'`,
    [runId],
  );
  const wait = rows[0]?.wait ?? null;
  return wait === null ? null : Math.max(0, wait);
}

export async function endSuspects(db: Db, ends: readonly SuspectEnd[]): Promise<void> {
  const rows = ends.map((end) => ({
    id: end.id,
    state: end.state,
    reason: end.state === 'undecided' ? end.reason : null,
    finding: end.state === 'confirmed' || end.state === 'undecided' ? end.finding : null,
    looks: end.state === 'waiting' ? end.looks : null,
    source_digest: end.state === 'waiting' ? end.sourceDigest : null,
    downstream_digest: end.state === 'waiting' ? end.downstreamDigest : null,
    after_ms: end.state === 'waiting' ? end.afterMs : 0,
  }));
  await db.raw(
    `update suspect s
        set state = e.state, reason = e.reason, finding = e.finding,
            looks = coalesce(e.looks, s.looks + 1),
            source_digest = case when e.state = 'waiting' then e.source_digest else s.source_digest end,
            downstream_digest = case when e.state = 'waiting' then e.downstream_digest else s.downstream_digest end,
            due_at = clock_timestamp() + e.after_ms * interval '1 millisecond'
       from jsonb_to_recordset(?::jsonb) as e(id bigint, state text, reason text, finding jsonb, looks int,
            source_digest text, downstream_digest text, after_ms float8)
      where s.id = e.id and s.state = 'waiting'`,
    [jsonColumn(rows)],
  );
}

export async function countSuspects(db: Db, runId: string): Promise<{ healed: number; undecided: number }> {
  const { rows } = await db.raw<{ rows: { healed: number; undecided: number }[] }>(
    `select (count(*) filter (where state = 'healed'))::int as healed,
            (count(*) filter (where state in ('undecided', 'waiting')))::int as undecided
       from suspect where run_id = ?`,
    [runId],
  );
  return rows[0] ?? { healed: 0, undecided: 0 };
}

/** Suspects of a run that cannot be rechecked any more (a side stays unreadable): they stay open as undecided. */
export async function leaveUndecided(db: Db, runId: string, reason: string): Promise<void> {
  await db('suspect').where({ run_id: runId, state: 'waiting' }).update({ state: 'undecided', reason });
}
