import { type Db, only } from './database.ts';

export interface TargetState {
  /** Attempts that are under way, over all workers. */
  readonly inFlight: number;
  /** Repairs that wait for their send, held ones aside; at most `MOST_COUNTED` of each stage. */
  readonly backlog: number;
}

/** Counting a million rows for one failed attempt would itself be the trouble. */
const MOST_COUNTED = 10_000;

/** What was going on at a target, for the evidence of a failed attempt. Each count reads one of the partial indexes. */
export async function targetState(db: Db, target: string): Promise<TargetState> {
  const waiting = (states: string) =>
    `(select count(*) from (select from compensation where target = :target and ${states} limit :most) w)`;
  const { rows } = await db.raw<{ rows: TargetState[] }>(
    `select (select count(*) from compensation where target = :target and state = 'sending')::int as "inFlight",
            (${waiting(`state in ('ready', 'retrying', 'deferred')`)} + ${waiting(`state = 'queued'`)}
              + ${waiting(`state = 'planned'`)})::int as backlog`,
    { target, most: MOST_COUNTED },
  );
  return only(rows);
}
