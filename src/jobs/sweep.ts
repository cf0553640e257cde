import type { Logger } from '../observe/logger.ts';
import { type Db, inTransaction } from '../store/database.ts';
import { recordDiffEvent } from '../store/diffs.ts';
import { returnLostRings, settleLostLeases } from '../store/sent.ts';

const BATCH = 500;

/**
 * Finds what a dead worker or a flushed queue left behind. A plain timer in every worker calls it, so it survives the
 * queue (DESIGN section 3). Pages by id until nothing is left, so a full batch never hides later rows.
 */
export async function sweep(db: Db, logger: Logger): Promise<{ rings: number; leases: number }> {
  let rings = 0;
  let leases = 0;
  for (;;) {
    const returned = await returnLostRings(db, BATCH);
    const lost = await inTransaction(db, async (trx) => {
      const rows = await settleLostLeases(trx, BATCH);
      for (const row of rows) {
        await recordDiffEvent(trx, { diffId: row.diffId, compensationId: row.id, event: 'lease-lost' });
      }
      return rows;
    });
    rings += returned;
    leases += lost.length;
    if (returned < BATCH && lost.length < BATCH) break;
  }
  if (rings + leases > 0) {
    logger.info(
      { event: 'sweep.recovered', rings, leases },
      'recovered work that a lost job or worker had left behind',
    );
  }
  return { rings, leases };
}
