import type { Db } from './database.ts';

/** What a run planned, as a log line names it. */
export interface Planned {
  readonly id: string;
  readonly diffId: string;
  readonly traceId: string;
  readonly target: string;
  readonly repair: string;
}

/** The next compensations that a run planned, by id. */
export async function plannedBy(db: Db, runId: string, afterId: string, limit: number): Promise<Planned[]> {
  return db('compensation')
    .where({ run_id: runId })
    .where('id', '>', afterId)
    .orderBy('id')
    .limit(limit)
    .select('id', 'diff_id as diffId', 'trace_id as traceId', 'target', 'repair');
}
