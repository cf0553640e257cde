import { TRANSITIONS } from '../compensate/state.ts';
import { recordAudit } from '../store/audit.ts';
import { changeState, lockDiff, openCompensations } from '../store/compensations.ts';
import { type Db, inTransaction } from '../store/database.ts';
import { readOpenDiffs, recordDiffEvent } from '../store/diffs.ts';
import type { Decision, DiffOutcome } from './operator.ts';

/** What became of the open compensations of one diff. */
interface HeldCount {
  readonly changed: number;
  /** Of a hold: sends that left already. Looks settle them, and no hold takes them back. */
  readonly sent: number;
}

/** Holds the compensations of a diff that were not sent yet, wherever they wait. */
async function holdCompensations(trx: Db, diffId: string): Promise<HeldCount> {
  await lockDiff(trx, diffId);
  const event = { type: 'hold' } as const;
  let changed = 0;
  let sent = 0;
  for (const from of await openCompensations(trx, diffId)) {
    if (from.state === 'held') continue;
    if (TRANSITIONS[from.state].hold === undefined) sent += 1;
    // Looks do not go on while it is held, so their clock does not either.
    else if (await changeState(trx, { from, event, values: { undecided_since: null } })) {
      changed += 1;
      await recordDiffEvent(trx, { diffId, compensationId: from.id, event: 'held' });
    }
  }
  return { changed, sent };
}

/** Lets the held compensations of a diff go on: they are planned again, and wait for their turn anew. */
async function releaseCompensations(trx: Db, diffId: string): Promise<HeldCount> {
  await lockDiff(trx, diffId);
  const event = { type: 'release' } as const;
  let changed = 0;
  for (const from of await openCompensations(trx, diffId)) {
    if (from.state !== 'held' || !(await changeState(trx, { from, event }))) continue;
    changed += 1;
    await recordDiffEvent(trx, { diffId, compensationId: from.id, event: 'released' });
  }
  return { changed, sent: 0 };
}

/** Holds the repairs of single diffs. Done only where something is held now. */
export function holdRepairs(db: Db, ids: readonly string[], decision: Decision): Promise<DiffOutcome[]> {
  return decide(db, ids, decision, 'diff.hold', async (trx, id) => {
    const { changed, sent } = await holdCompensations(trx, id);
    if (changed > 0) return { id, done: true, what: 'repair on hold' };
    const why = sent > 0 ? 'its send left already; looks settle it' : 'no repair of it waits';
    return { id, done: false, why };
  });
}

/** Releases what `holdRepairs` held. */
export function releaseRepairs(db: Db, ids: readonly string[], decision: Decision): Promise<DiffOutcome[]> {
  return decide(db, ids, decision, 'diff.release', async (trx, id) => {
    const { changed } = await releaseCompensations(trx, id);
    if (changed > 0) return { id, done: true, what: 'repair released' };
    return { id, done: false, why: 'no repair of it is on hold' };
  });
}

async function decide(
  db: Db,
  ids: readonly string[],
  { actor, reason }: Decision,
  action: 'diff.hold' | 'diff.release',
  change: (trx: Db, id: string) => Promise<DiffOutcome>,
): Promise<DiffOutcome[]> {
  const outcomes: DiffOutcome[] = [];
  for (const id of ids) {
    const outcome = await inTransaction(db, async (trx): Promise<DiffOutcome> => {
      if ((await readOpenDiffs(trx, [id])).length === 0)
        return { id, done: false, why: 'there is no open diff with this id' };
      const changed = await change(trx, id);
      const { name, origin } = actor;
      const subject = `diff ${id}`;
      if (changed.done)
        await recordAudit(trx, {
          actor: name,
          origin,
          action,
          subject,
          reason,
          before: null,
          after: changed.what,
        });
      return changed;
    });
    outcomes.push(outcome);
  }
  return outcomes;
}
