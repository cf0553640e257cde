import { type Db, inTransaction } from './database.ts';
import { jsonColumn } from './json-column.ts';
import { type Run, type RunCounts, type RunGuard, updateClaimed } from './runs.ts';

/** The guard stops a run: its diffs are stored, nothing is planned, a person decides. */
export async function holdRun(db: Db, run: Run, guard: RunGuard, counts: RunCounts): Promise<void> {
  await updateClaimed(db, run, {
    phase: 'held',
    guard: jsonColumn(guard),
    counts: jsonColumn(counts),
    verdict: 'differ',
    reason: guard.pattern,
    lease_until: null,
    lease_owner: null,
  });
}

/** True when another run of the reconciliation is on hold. */
export async function otherRunHeld(db: Db, run: Pick<Run, 'id' | 'reconciliation'>): Promise<boolean> {
  const row = await db('run')
    .where({ reconciliation: run.reconciliation, phase: 'held' })
    .whereNot('id', run.id)
    .first('id');
  return row !== undefined;
}

/**
 * A person lets a held run go on. What it found may be hours old, so all of it is looked at again, witnessed by what
 * the last look saw (rule 5.11), before anything is concluded and planned.
 */
export async function releaseRun(db: Db, id: string, reason: string): Promise<boolean> {
  return inTransaction(db, async (trx) => {
    const { rows } = await trx.raw<{ rows: unknown[] }>(
      `update run set phase = 'rechecking', due_at = clock_timestamp(), ring_until = null, tries = 0,
              verdict = null, reason = null,
              guard = coalesce(guard, '{}'::jsonb) || jsonb_build_object('released', :reason::text)
        where id = :id and phase = 'held' returning id`,
      { id, reason },
    );
    if (rows.length === 0) return false;
    await trx('suspect')
      .where({ run_id: id, state: 'confirmed' })
      .update({ state: 'waiting', looks: 1, due_at: trx.raw('clock_timestamp()') });
    return true;
  });
}

/**
 * A person ends a run that is held or not finished. A held run's diffs are stored and stay, unplanned; what an
 * unfinished run had not yet decided stays open as undecided, since the coverage is past it.
 */
export async function endRun(db: Db, id: string, reason: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { held: boolean }[] }>(
    `update run set phase = 'done', result = 'discarded', reason = :reason,
            verdict = coalesce(run.verdict, 'undecided'),
            ended_at = clock_timestamp(), lease_token = run.lease_token + 1, lease_until = null
       from (select id, phase = 'held' as held from run where id = :id for update) before
      where run.id = before.id and run.phase <> 'done' returning before.held`,
    { id, reason },
  );
  const [ended] = rows;
  if (ended === undefined) return false;
  if (!ended.held) {
    await db('suspect')
      .where({ run_id: id })
      .whereIn('state', ['waiting', 'confirmed'])
      .update({ state: 'undecided', reason: `the run was discarded: ${reason}` });
  }
  return true;
}

/** What the guard saw in the newest complete run of each reconciliation, where nobody released it. */
export async function guardPatterns(
  db: Db,
  reconciliations: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await db.raw<{ rows: { reconciliation: string; pattern: string }[] }>(
    `select named.reconciliation, newest.guard ->> 'pattern' as pattern
       from unnest(?::text[]) as named (reconciliation)
      cross join lateral (select guard from run r
                           where r.reconciliation = named.reconciliation and r.result = 'complete'
                           order by r.id desc limit 1) newest
      where newest.guard ->> 'pattern' is not null and newest.guard ->> 'released' is null`,
    [[...reconciliations]],
  );
  return new Map(rows.map((row) => [row.reconciliation, row.pattern]));
}
