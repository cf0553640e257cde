import type { Db } from './database.ts';

/** What runs wait for at one target, their own repairs and those that an earlier run planned for what they saw. */
export interface OpenWork {
  readonly target: string;
  /** Not sent yet, or to be sent again. */
  readonly unsent: number;
  /** On their way, or sent and not seen yet. */
  readonly sent: number;
}

const OURS = `select id, target, state from compensation where run_id = any(:runs) and ended_at is null and state <> 'held'
  union
  select c.id, c.target, c.state from diff d join compensation c on c.diff_id = d.id
   where d.run_id = any(:runs) and c.ended_at is null and c.state <> 'held'`;

export async function openWorkOfRuns(db: Db, runIds: readonly string[]): Promise<OpenWork[]> {
  const { rows } = await db.raw<{ rows: OpenWork[] }>(
    `select target, (count(*) filter (where state not in ('sending', 'applied', 'unknown')))::int as unsent,
            (count(*) filter (where state in ('sending', 'applied', 'unknown')))::int as sent
       from (${OURS}) ours group by target order by target`,
    { runs: [...runIds] },
  );
  return rows;
}

/** Compensations of a target that are still to be sent, whoever planned them. */
export async function unsentOf(db: Db, target: string): Promise<number> {
  const { rows } = await db.raw<{ rows: { n: number }[] }>(
    `select count(*)::int as n from compensation
      where target = ? and state in ('planned', 'ready', 'queued', 'retrying', 'deferred')`,
    [target],
  );
  return rows[0]?.n ?? 0;
}

/** Changes when something moves: a run's reading and phase, and every repair that was accepted or has ended. */
export async function movement(db: Db, runIds: readonly string[]): Promise<string> {
  const { rows } = await db.raw<{ rows: { at: string }[] }>(
    `select concat_ws(' ', string_agg(concat_ws(' ', r.id, r.phase, r.read_to), ',' order by r.id),
              (select count(*) from suspect s where s.run_id = any(:runs) and s.state <> 'waiting'),
              (select concat_ws(' ', count(*) filter (where c.ended_at is not null),
                                count(*) filter (where c.state = 'applied'), max(c.id))
                 from compensation c where c.run_id = any(:runs))) as at
       from run r where r.id = any(:runs)`,
    { runs: [...runIds] },
  );
  return rows[0]?.at ?? '';
}

/**
 * Open diffs that the run saw, or planned a repair for, whose newest repair was handed to a person, by whichever run:
 * nothing goes on with them until somebody decides.
 */
export async function needPerson(db: Db, runId: string): Promise<number> {
  const { rows } = await db.raw<{ rows: { n: number }[] }>(
    `select count(*)::int as n
       from (select id from diff where run_id = :run
             union select diff_id from compensation where run_id = :run) seen
       join diff d on d.id = seen.id
       join lateral (select state from compensation where diff_id = d.id order by id desc limit 1) c on true
      where d.state = 'open' and c.state = 'escalated'`,
    { run: runId },
  );
  return rows[0]?.n ?? 0;
}

/** True while one of the runs has not come to its end or to a hold. */
export async function areReading(db: Db, runIds: readonly string[]): Promise<boolean> {
  const row = await db('run')
    .whereIn('id', [...runIds])
    .whereNotIn('phase', ['done', 'held'])
    .first('id');
  return row !== undefined;
}
