import type { Config } from '../config/schema.ts';
import type { Db } from '../store/database.ts';
import { deleteExpired, type Expired, type RetentionAges } from '../store/retention.ts';
import { claimUpkeep, postponeUpkeep } from '../store/upkeep.ts';

/** Rows of one statement: small enough that nobody waits for its locks. */
const BATCH = 1_000;
const EVERY_MS = 3_600_000;
/** A process that died while it deleted is followed by another after this. */
const LEASE_MS = 300_000;

/**
 * Deletes what is kept no longer, batch by batch, in one process at a time and once an hour. Null when it was not this
 * one's turn. An abort ends it after the statement in hand, and the next process goes on where it stopped.
 */
export async function retain(
  db: Db,
  ages: RetentionAges,
  signal: AbortSignal,
  batch = BATCH,
): Promise<Expired | null> {
  if (!(await claimUpkeep(db, 'retention', LEASE_MS))) return null;
  const sum = { diffs: 0, emptied: 0, runs: 0, slots: 0, alerts: 0 };
  for (;;) {
    const expired = await deleteExpired(db, ages, batch, signal);
    const counts = Object.values(expired);
    for (const kind of Object.keys(sum) as (keyof Expired)[]) sum[kind] += expired[kind];
    if (signal.aborted || !counts.includes(batch)) break;
    await postponeUpkeep(db, 'retention', LEASE_MS);
  }
  await postponeUpkeep(db, 'retention', signal.aborted ? 0 : EVERY_MS);
  return sum;
}

/**
 * How long ended rows are kept: what the configuration says, and diffs with their ledger never shorter than somebody
 * may still ask for them. A key outlives the time in which it may be sent again (`giveUpAfter + keyRetention`), and a
 * repair the time in which its diff coming back is a relapse (rule 6.4).
 */
export function agesOf(config: Config): RetentionAges {
  const keys = Object.values(config.targets).map(
    (target) => target.giveUpAfter + target.idempotency.keyRetention,
  );
  const relapses = Object.values(config.reconciliations).map(({ relapse }) => relapse);
  const { runs, diffs } = config.retention;
  return { runsMs: runs, diffsMs: Math.max(diffs, ...keys, ...relapses) };
}
