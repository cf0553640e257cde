import type { Logger } from '../observe/logger.ts';
import type { Db } from '../store/database.ts';
import { plannedBy } from '../store/planned.ts';

const PAGE = 1_000;

/**
 * One debug line for each compensation that a run planned, so that a record's trace id is in the log from its plan on.
 * Read back after the commit: what was rolled back was not planned. Costs nothing when nobody reads debug lines.
 */
export async function tellPlanned(
  { db, logger }: { db: Db; logger: Logger },
  run: { id: string; reconciliation: string },
): Promise<void> {
  if (!logger.isLevelEnabled('debug')) return;
  let after = '0';
  for (;;) {
    const page = await plannedBy(db, run.id, after, PAGE);
    for (const { id, diffId, traceId, target, repair } of page) {
      const ids = {
        traceId,
        compensation: id,
        diff: diffId,
        run: run.id,
        reconciliation: run.reconciliation,
      };
      logger.debug({ event: 'compensation.planned', ...ids, target, repair }, 'planned');
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.id;
  }
}
