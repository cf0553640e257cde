import type { CompareContext } from '../reconcile/compare-records.ts';
import { lookBoth } from '../reconcile/look.ts';
import { keyText, type Verdict } from '../reconcile/record.ts';
import { lockDiff, lockPlanning } from '../store/compensations.ts';
import { type Db, inTransaction, storeClock } from '../store/database.ts';
import { closeDiff, type OpenDiff, readOpenDiffs, reopenDiff } from '../store/diffs.ts';
import { audit, cancelUnsent, type Decision, type DiffOutcome } from './operator.ts';
import type { Pair } from './pair.ts';
import { planDiff } from './plan-findings.ts';

/** Diffs that share a look. What it showed is planned at once, so it is seconds old however many diffs are asked for. */
const GROUP = 100;
const LOOK_WITHIN_MS = 60_000;

export interface ReplayDeps {
  readonly db: Db;
  readonly pairs: ReadonlyMap<string, Pair>;
  readonly look: (pair: Pair) => CompareContext;
  readonly configRevision: number | null;
}

/**
 * Plans the repair of diffs once more, from what both sides hold now: a fresh look first, so that a healed diff
 * closes without a send. A refused repair is sent under a new revision (rule 6.2); an unknown one keeps its key.
 * Each diff is a transaction of its own: what was done when this is stopped half-way stays done, the rest stays open.
 * `onProgress` is told after each group. A side that cannot be read ends the replay of its reconciliation; the
 * outcomes say so.
 */
export async function replayDiffs(
  deps: ReplayDeps,
  ids: readonly string[],
  decision: Decision,
  onProgress: (outcomes: number) => void = () => {},
): Promise<DiffOutcome[]> {
  const outcomes: DiffOutcome[] = [];
  const unreadable = new Map<string, string>();
  for (let start = 0; start < ids.length; start += GROUP) {
    const group = ids.slice(start, start + GROUP);
    const diffs = await readOpenDiffs(deps.db, group);
    const known = new Set(diffs.map((diff) => diff.id));
    outcomes.push(...group.filter((id) => !known.has(id)).map((id) => refused(id, NOT_OPEN)));
    for (const [name, ofPair] of groupBy(diffs, (diff) => diff.reconciliation))
      outcomes.push(...(await replayGroup(deps, name, ofPair, decision, unreadable)));
    onProgress(outcomes.length);
  }
  return outcomes;
}

const NOT_OPEN = 'there is no open diff with this id';

function refused(id: string, why: string): DiffOutcome {
  return { id, done: false, why };
}

async function replayGroup(
  deps: ReplayDeps,
  name: string,
  diffs: readonly OpenDiff[],
  decision: Decision,
  unreadable: Map<string, string>,
): Promise<DiffOutcome[]> {
  const pair = deps.pairs.get(name);
  if (!pair) return diffs.map(({ id }) => refused(id, `the configuration has no reconciliation ${name}`));
  const verdicts = unreadable.has(name) ? null : await look(deps, pair, diffs, unreadable);
  if (verdicts === null) {
    const why = `not looked at: ${unreadable.get(name)}`;
    return diffs.map(({ id }) => refused(id, why));
  }
  const outcomes: DiffOutcome[] = [];
  for (const diff of diffs)
    outcomes.push(await replayOne(deps, pair, diff, verdicts.get(keyText(diff.key)), decision));
  return outcomes;
}

/** Null, with the reason noted, when a side could not be read: that says nothing about any diff. */
async function look(
  deps: ReplayDeps,
  pair: Pair,
  diffs: readonly OpenDiff[],
  unreadable: Map<string, string>,
): Promise<ReadonlyMap<string, Verdict> | null> {
  const keys = diffs.map((diff) => diff.key);
  const signal = AbortSignal.timeout(LOOK_WITHIN_MS);
  try {
    return await lookBoth(keys, pair.source, pair.downstream, deps.look(pair), signal);
  } catch (error) {
    unreadable.set(pair.name, error instanceof Error ? error.message : String(error));
    return null;
  }
}

async function replayOne(
  deps: ReplayDeps,
  pair: Pair,
  diff: OpenDiff,
  verdict: Verdict | undefined,
  decision: Decision,
): Promise<DiffOutcome> {
  const { id } = diff;
  if (!verdict || verdict.verdict === 'undecided') return refused(id, 'the records cannot be decided now');
  return inTransaction(deps.db, async (trx): Promise<DiffOutcome> => {
    await lockPlanning(trx, pair.name);
    await lockDiff(trx, id);
    // Somebody may have closed it since the group was read.
    if ((await readOpenDiffs(trx, [id])).length === 0) return refused(id, NOT_OPEN);
    if (verdict.verdict === 'match') return closeHealed(trx, id);
    await reopenDiff(trx, id);
    const planned = await planDiff(
      trx,
      { id, traceId: diff.traceId, finding: verdict.finding },
      { pair, now: await storeClock(trx), runId: null, configRevision: deps.configRevision, byPerson: true },
    );
    switch (planned.kind) {
      case 'report':
        return refused(id, planned.why);
      case 'waits':
        return refused(id, 'a send is on its way; wait until it is settled');
      case 'unchanged':
        return refused(id, 'this repair is planned already');
      case 'flapping':
      case 'conflict':
        return refused(id, `handed to a person: ${planned.kind}`);
      case 'planned':
        await audit(trx, decision, 'diff.replay', `diff ${id}`, null, planned);
        return { id, done: true, what: 'planned' };
    }
  });
}

async function closeHealed(trx: Db, id: string): Promise<DiffOutcome> {
  if (!(await cancelUnsent(trx, id))) return refused(id, 'a send is on its way; wait until it is settled');
  const reason = 'a look before the replay found the sides equal';
  await closeDiff(trx, id, { state: 'healed', by: 'trueup', reason });
  return { id, done: true, what: 'healed already; nothing to send' };
}

function groupBy<T>(items: readonly T[], name: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(name(item));
    if (group) group.push(item);
    else groups.set(name(item), [item]);
  }
  return groups;
}
