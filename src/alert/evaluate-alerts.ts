import { type Db, inTransaction } from '../store/database.ts';
import { claimUpkeep, postponeUpkeep } from '../store/upkeep.ts';
import { refreshAlerts } from './outbox.ts';

/** Shorter than the pause of the loop that calls this, so that one process alone finds it due each time. */
const EVERY_MS = 1_500;
/** A process that died while it evaluated is followed by another after this. */
const LEASE_MS = 30_000;
/** Evaluating takes a sixth of the time at most, unless that would let a new alert wait for longer than this. */
const SHARE = 5;
const LONGEST_MS = 15_000;

/** Compares what is wrong with the open alerts, in one process at a time. False when it was not this one's turn. */
export async function evaluateAlerts(db: Db, alerts: Parameters<typeof refreshAlerts>[1]): Promise<boolean> {
  if (!(await claimUpkeep(db, 'alerts', LEASE_MS))) return false;
  const since = performance.now();
  try {
    await inTransaction(db, (trx) => refreshAlerts(trx, alerts));
  } finally {
    const tookMs = performance.now() - since;
    await postponeUpkeep(db, 'alerts', Math.min(LONGEST_MS, Math.max(EVERY_MS, tookMs * SHARE)));
  }
  return true;
}
