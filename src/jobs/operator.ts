import { parseDuration } from '../config/duration.ts';
import type { Config, Target } from '../config/schema.ts';
import { EXIT, TrueupError } from '../error.ts';
import type { CompareContext } from '../reconcile/compare-records.ts';
import { lookBoth } from '../reconcile/look.ts';
import { keyText, type Verdict } from '../reconcile/record.ts';
import { recordAudit } from '../store/audit.ts';
import { changeState, lockDiff, openCompensations } from '../store/compensations.ts';
import { type Db, inTransaction, storeClock } from '../store/database.ts';
import { closeDiff, markDiffFailed, type OpenDiff, readOpenDiffs, reopenDiff } from '../store/diffs.ts';
import { type GateStatus, gateStatus, holdGate, overrideWatermark, releaseGate } from '../store/gates.ts';
import { endRun, releaseRun } from '../store/runs.ts';
import type { Pair } from './pair.ts';
import { planDiff } from './plan-findings.ts';

/**
 * What a person can decide. CLI, API and page call these and nothing else; each changing call writes its audit row in
 * the same transaction (who, from where, what, why, before, after).
 */
export interface Actor {
  readonly name: string;
  /** `cli host` or the API's client address. */
  readonly origin: string;
}

export interface Decision {
  readonly actor: Actor;
  readonly reason: string;
}

const NOT_SENT = new Set(['planned', 'held', 'ready', 'queued', 'retrying', 'deferred']);

function audit(
  trx: Db,
  decision: Decision,
  action: string,
  subject: string,
  before: unknown,
  after: unknown,
) {
  const { actor, reason } = decision;
  return recordAudit(trx, {
    actor: actor.name,
    origin: actor.origin,
    action,
    subject,
    reason,
    before,
    after,
  });
}

// ------------------------------------------------------------------------------------------------------- diffs

export type DiffOutcome =
  | { readonly id: string; readonly done: true; readonly what: string }
  | { readonly id: string; readonly done: false; readonly why: string };

/** Ends the repairs of a diff that have not been sent; false when one is on its way and must be settled first. */
async function cancelUnsent(trx: Db, diffId: string): Promise<boolean> {
  await lockDiff(trx, diffId);
  const open = await openCompensations(trx, diffId);
  if (open.some(({ state }) => !NOT_SENT.has(state))) return false;
  for (const one of open) await changeState(trx, { from: one, event: { type: 'cancel' } });
  return true;
}

/** Settled by hand or accepted as it is: closed, and closed it stays while both records are unchanged (rule 6.5). */
export async function closeDiffs(
  db: Db,
  ids: readonly string[],
  end: { state: 'resolved' | 'dismissed'; dismissedForMs?: number },
  decision: Decision,
): Promise<DiffOutcome[]> {
  return each(ids, (id) =>
    inTransaction(db, async (trx): Promise<DiffOutcome> => {
      if (!(await cancelUnsent(trx, id)))
        return { id, done: false, why: 'a send is on its way; wait until it is settled' };
      const closed = await closeDiff(trx, id, { ...end, by: decision.actor.name, reason: decision.reason });
      if (!closed) return { id, done: false, why: 'there is no open diff with this id' };
      await audit(trx, decision, `diff.${end.state}`, `diff ${id}`, { state: 'open' }, end);
      return { id, done: true, what: end.state };
    }),
  );
}

/** No repair will come from here: unsent repairs end, and the diff stays in sight until the sides agree. */
export async function failDiffs(db: Db, ids: readonly string[], decision: Decision): Promise<DiffOutcome[]> {
  return each(ids, (id) =>
    inTransaction(db, async (trx): Promise<DiffOutcome> => {
      if (!(await cancelUnsent(trx, id)))
        return { id, done: false, why: 'a send is on its way; wait until it is settled' };
      const marked = await markDiffFailed(trx, id, decision.actor.name, decision.reason);
      if (!marked) return { id, done: false, why: 'there is no open diff with this id' };
      await audit(trx, decision, 'diff.failed', `diff ${id}`, { state: 'open' }, { state: 'failed' });
      return { id, done: true, what: 'failed' };
    }),
  );
}

/** Ends the unsent repairs of diffs; the diffs stay open. */
export async function cancelRepairs(
  db: Db,
  ids: readonly string[],
  decision: Decision,
): Promise<DiffOutcome[]> {
  return each(ids, (id) =>
    inTransaction(db, async (trx): Promise<DiffOutcome> => {
      if ((await readOpenDiffs(trx, [id])).length === 0)
        return { id, done: false, why: 'there is no open diff with this id' };
      if (!(await cancelUnsent(trx, id)))
        return { id, done: false, why: 'a send is on its way; wait until it is settled' };
      await audit(trx, decision, 'diff.cancel', `diff ${id}`, null, { repairs: 'cancelled' });
      return { id, done: true, what: 'repairs cancelled' };
    }),
  );
}

export interface ReplayDeps {
  readonly db: Db;
  readonly pairs: ReadonlyMap<string, Pair>;
  readonly look: (pair: Pair) => CompareContext;
  readonly configRevision: number | null;
}

/**
 * Plans the repair of diffs once more, from what both sides hold now: a fresh look first, so that a healed diff
 * closes without a send. A refused repair is sent under a new revision (rule 6.2); an unknown one keeps its key.
 */
export async function replayDiffs(
  deps: ReplayDeps,
  ids: readonly string[],
  decision: Decision,
): Promise<DiffOutcome[]> {
  const diffs = await readOpenDiffs(deps.db, ids);
  const known = new Set(diffs.map((diff) => diff.id));
  const outcomes: DiffOutcome[] = ids
    .filter((id) => !known.has(id))
    .map((id) => ({ id, done: false, why: 'there is no open diff with this id' }));
  for (const [name, group] of groupBy(diffs, (diff) => diff.reconciliation)) {
    const pair = deps.pairs.get(name);
    if (!pair) {
      outcomes.push(
        ...group.map(({ id }) => ({
          id,
          done: false as const,
          why: `the configuration has no reconciliation ${name}`,
        })),
      );
      continue;
    }
    const keys = group.map((diff) => diff.key);
    const verdicts = await lookBoth(
      keys,
      pair.source,
      pair.downstream,
      deps.look(pair),
      AbortSignal.timeout(60_000),
    );
    for (const diff of group)
      outcomes.push(await replayOne(deps, pair, diff, verdicts.get(keyText(diff.key)), decision));
  }
  return outcomes;
}

async function replayOne(
  deps: ReplayDeps,
  pair: Pair,
  diff: OpenDiff,
  verdict: Verdict | undefined,
  decision: Decision,
): Promise<DiffOutcome> {
  const { id } = diff;
  return inTransaction(deps.db, async (trx): Promise<DiffOutcome> => {
    if (!verdict || verdict.verdict === 'undecided')
      return { id, done: false, why: 'the records cannot be decided now' };
    if (verdict.verdict === 'match') {
      if (!(await cancelUnsent(trx, id)))
        return { id, done: false, why: 'a send is on its way; wait until it is settled' };
      await closeDiff(trx, id, {
        state: 'healed',
        by: 'trueup',
        reason: 'a look before the replay found the sides equal',
      });
      return { id, done: true, what: 'healed already; nothing to send' };
    }
    await reopenDiff(trx, id);
    const planned = await planDiff(
      trx,
      { id, traceId: diff.traceId, finding: verdict.finding },
      { pair, now: await storeClock(trx), runId: null, configRevision: deps.configRevision, byPerson: true },
    );
    switch (planned.kind) {
      case 'report':
        return { id, done: false, why: planned.why };
      case 'waits':
        return { id, done: false, why: 'a send is on its way; wait until it is settled' };
      case 'unchanged':
        return { id, done: false, why: 'this repair is planned already' };
      case 'flapping':
      case 'conflict':
        return { id, done: false, why: `handed to a person: ${planned.kind}` };
      case 'planned':
        await audit(trx, decision, 'diff.replay', `diff ${id}`, null, planned);
        return { id, done: true, what: 'planned' };
    }
  });
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

async function each(
  ids: readonly string[],
  decide: (id: string) => Promise<DiffOutcome>,
): Promise<DiffOutcome[]> {
  const outcomes: DiffOutcome[] = [];
  for (const id of ids) outcomes.push(await decide(id));
  return outcomes;
}

// ------------------------------------------------------------------------------------------------ targets, runs

function targetOf(config: Config, name: string): { target: Target; gate: string } {
  const target = config.targets[name];
  if (!target) {
    throw new TrueupError('TRU_UNKNOWN_TARGET', `there is no target "${name}"`, {
      exit: EXIT.usage,
      hint: `targets are: ${Object.keys(config.targets).join(', ') || 'none'}`,
    });
  }
  return { target, gate: target.upstream ?? name };
}

export async function holdTarget(db: Db, config: Config, name: string, decision: Decision): Promise<void> {
  const { gate } = targetOf(config, name);
  await inTransaction(db, async (trx) => {
    await holdGate(trx, gate, decision.reason, decision.actor.name);
    await audit(trx, decision, 'target.hold', `target ${name}`, null, { held: decision.reason });
  });
}

export async function releaseTarget(
  db: Db,
  config: Config,
  name: string,
  decision: Decision,
): Promise<boolean> {
  const { gate } = targetOf(config, name);
  return inTransaction(db, async (trx) => {
    const released = await releaseGate(trx, gate);
    if (released)
      await audit(trx, decision, 'target.release', `target ${name}`, { held: true }, { held: false });
    return released;
  });
}

/** Lets a run that the guard stopped plan its diffs. */
export async function releaseHeldRun(db: Db, id: string, decision: Decision): Promise<boolean> {
  return inTransaction(db, async (trx) => {
    const released = await releaseRun(trx, id, decision.reason);
    if (released)
      await audit(trx, decision, 'run.release', `run ${id}`, { phase: 'held' }, { phase: 'concluding' });
    return released;
  });
}

/** Ends a run that is held or not finished; what it found stays open. */
export async function discardRun(db: Db, id: string, decision: Decision): Promise<boolean> {
  return inTransaction(db, async (trx) => {
    const ended = await endRun(trx, id, 'discarded', decision.reason);
    if (ended) await audit(trx, decision, 'run.discard', `run ${id}`, null, { result: 'discarded' });
    return ended;
  });
}

export function readWatermark(db: Db, config: Config, name: string): Promise<GateStatus> {
  const { target, gate } = targetOf(config, name);
  return gateStatus(db, gate, target);
}

/** Sets or clears a person's watermark; it can only be lower than the configured ceiling (rule 6.17). */
export async function setWatermark(
  db: Db,
  config: Config,
  name: string,
  override: { perMinute: number; for: string | null } | null,
  decision: Decision,
): Promise<GateStatus> {
  const { target, gate } = targetOf(config, name);
  const before = await gateStatus(db, gate, target);
  if (override !== null && before.ceiling !== null && override.perMinute > before.ceiling) {
    throw new TrueupError(
      'TRU_WATERMARK_ABOVE_CEILING',
      `${override.perMinute} is above the ceiling of ${before.ceiling} that the configuration sets for ${name}`,
      { exit: EXIT.usage, hint: `give a number up to ${before.ceiling}, or raise targets.${name}.watermark` },
    );
  }
  const forMs = override === null || override.for === null ? null : durationOf(override.for);
  return inTransaction(db, async (trx) => {
    await overrideWatermark(trx, gate, override === null ? null : { perMinute: override.perMinute, forMs });
    const after = await gateStatus(trx, gate, target);
    await audit(
      trx,
      decision,
      'target.watermark',
      `target ${name}`,
      { override: before.override },
      { override: after.override },
    );
    return after;
  });
}

function durationOf(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  throw new TrueupError('TRU_BAD_DURATION', `"${text}" is no duration`, {
    exit: EXIT.usage,
    hint: 'write 15m, 1h30m or PT15M',
  });
}
