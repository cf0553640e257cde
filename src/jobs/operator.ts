import { parseDuration } from '../config/duration.ts';
import { knownNames } from '../config/known-names.ts';
import type { Target } from '../config/schema.ts';
import { EXIT, TrueupError } from '../error.ts';
import { recordAudit } from '../store/audit.ts';
import { changeState, lockDiff, openCompensations } from '../store/compensations.ts';
import { type Db, inTransaction } from '../store/database.ts';
import { closeDiff, markDiffFailed, readOpenDiffs } from '../store/diffs.ts';
import { type GateStatus, gateStatus, holdGate, overrideWatermark, releaseGate } from '../store/gates.ts';
import { endRun, releaseRun } from '../store/run-holds.ts';

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

/** Writes the audit row of a decision; call in the transaction of the change. */
export function audit(
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
export async function cancelUnsent(trx: Db, diffId: string): Promise<boolean> {
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

async function each(
  ids: readonly string[],
  decide: (id: string) => Promise<DiffOutcome>,
): Promise<DiffOutcome[]> {
  const outcomes: DiffOutcome[] = [];
  for (const id of ids) outcomes.push(await decide(id));
  return outcomes;
}

// ------------------------------------------------------------------------------------------------ targets, runs

/** What decisions on targets need of a configuration. */
export interface GateConfig {
  readonly targets: Readonly<Record<string, Pick<Target, 'upstream' | 'watermark'>>>;
}

function targetOf(config: GateConfig, name: string): { target: Pick<Target, 'watermark'>; gate: string } {
  const target = config.targets[name];
  if (!target) {
    throw new TrueupError('TRU_UNKNOWN_TARGET', `there is no target "${name}"`, {
      exit: EXIT.usage,
      hint: knownNames(name, Object.keys(config.targets), 'targets'),
    });
  }
  return { target, gate: target.upstream ?? name };
}

export async function holdTarget(
  db: Db,
  config: GateConfig,
  name: string,
  decision: Decision,
): Promise<void> {
  const { gate } = targetOf(config, name);
  await inTransaction(db, async (trx) => {
    await holdGate(trx, gate, decision.reason, decision.actor.name);
    await audit(trx, decision, 'target.hold', `target ${name}`, null, { held: decision.reason });
  });
}

export async function releaseTarget(
  db: Db,
  config: GateConfig,
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

/** Lets a run that the guard stopped go on: it looks at all it found once more, then plans what still differs. */
export async function releaseHeldRun(db: Db, id: string, decision: Decision): Promise<boolean> {
  return inTransaction(db, async (trx) => {
    const released = await releaseRun(trx, id, decision.reason);
    if (released)
      await audit(trx, decision, 'run.release', `run ${id}`, { phase: 'held' }, { phase: 'rechecking' });
    return released;
  });
}

/** Ends a run that is held or not finished; what it found stays open. */
export async function discardRun(db: Db, id: string, decision: Decision): Promise<boolean> {
  return inTransaction(db, async (trx) => {
    const ended = await endRun(trx, id, decision.reason);
    if (ended) await audit(trx, decision, 'run.discard', `run ${id}`, null, { result: 'discarded' });
    return ended;
  });
}

export function readWatermark(db: Db, config: GateConfig, name: string): Promise<GateStatus> {
  const { target, gate } = targetOf(config, name);
  return gateStatus(db, gate, target);
}

/** Sets or clears a person's watermark; it can only be lower than the configured ceiling (rule 6.17). */
export async function setWatermark(
  db: Db,
  config: GateConfig,
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
