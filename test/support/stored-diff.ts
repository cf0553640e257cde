import type { Db } from '../../src/store/database.ts';

/** A run as it ended, or as it stands. Gives its id. */
export async function storeRun(
  db: Db,
  run: { reconciliation: string; phase?: string; result?: string; reason?: string; endedMinutesAgo?: number },
): Promise<string> {
  const { endedMinutesAgo = 0, phase = 'done', result = null, reason = null, reconciliation } = run;
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `insert into run (reconciliation, trigger, mode, window_from, window_to, moves_coverage, phase, result, reason, ended_at)
     values (:reconciliation, 'schedule', 'check', now() - interval '1 hour', now(), true, :phase, :result, :reason,
             case when :phase = 'done' then clock_timestamp() - :endedMinutesAgo * interval '1 minute' end)
     returning id`,
    { reconciliation, phase, result, reason, endedMinutesAgo },
  );
  return rows[0]?.id ?? '';
}

export interface StoredDiff {
  readonly reconciliation: string;
  /** Parts of the business key. */
  readonly key: readonly string[];
  readonly kind?: string;
  readonly runId?: string | null;
  readonly target?: string;
  /** State of its compensation; left out: it has none. */
  readonly state?: string;
  readonly escalation?: string;
  readonly attempt?: { outcome: string; code: string; error?: unknown; answer?: unknown };
}

/** An open diff, with its compensation and last attempt where they are named. Gives the diff's id. */
export async function storeDiff(db: Db, diff: StoredDiff): Promise<string> {
  const key = JSON.stringify(diff.key);
  const [row] = await db('diff')
    .insert({
      reconciliation: diff.reconciliation,
      run_id: diff.runId ?? null,
      business_key: key,
      kind: diff.kind ?? 'missing',
      trace_id: 'a'.repeat(32),
      next_look: db.fn.now(),
    })
    .returning('id');
  if (diff.state !== undefined) await storeCompensation(db, row.id, key, diff);
  return row.id;
}

async function storeCompensation(db: Db, diffId: string, key: string, diff: StoredDiff): Promise<void> {
  const ended = ['verified', 'healed', 'cancelled', 'superseded', 'escalated'].includes(diff.state ?? '');
  const [row] = await db('compensation')
    .insert({
      diff_id: diffId,
      reconciliation: diff.reconciliation,
      repair: 'missing',
      side: 'downstream',
      target: diff.target ?? 'gateway',
      order_scope: diff.reconciliation,
      business_key: key,
      operation: 'missing',
      idempotency_key: `${diff.reconciliation}:${key}`,
      fingerprint: 'f',
      payload: JSON.stringify({ type: 'module', module: 'm', input: null }),
      state: diff.state,
      escalation: diff.escalation ?? null,
      ended_at: ended ? db.fn.now() : null,
      trace_id: 'a'.repeat(32),
    })
    .returning('id');
  if (diff.attempt === undefined) return;
  await db('attempt').insert({
    compensation_id: row.id,
    number: 1,
    target: diff.target ?? 'gateway',
    worker: 'w1',
    slot_at: db.fn.now(),
    deadline: db.fn.now(),
    ended_at: db.fn.now(),
    outcome: diff.attempt.outcome,
    error_code: diff.attempt.code,
    error: diff.attempt.error === undefined ? null : JSON.stringify(diff.attempt.error),
    answer: diff.attempt.answer === undefined ? null : JSON.stringify(diff.attempt.answer),
  });
}
