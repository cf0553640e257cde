import { nextRevision } from '../compensate/identity.ts';
import { type CompensationPlan, planCompensation } from '../compensate/plan.ts';
import { mappedTraceId, newTraceId } from '../observe/tracing.ts';
import type { Instant } from '../reconcile/instant.ts';
import type { Finding } from '../reconcile/record.ts';
import {
  type Compensation,
  changeState,
  compensationHistory,
  forgetUnknown,
  insertCompensations,
  lockPlanning,
  type NewCompensation,
  openCompensations,
  openFingerprints,
  usedKeys,
} from '../store/compensations.ts';
import { type Db, only, storeClock } from '../store/database.ts';
import { type DiffEvent, recordDiffEvent, recordDiffEvents } from '../store/diffs.ts';
import type { Run } from '../store/runs.ts';
import { saveDiffs } from '../store/save-diffs.ts';
import type { Pair } from './pair.ts';

/** States in which a plan can still be replaced by a better one: nothing of it has left. */
const REPLACEABLE = new Set(['planned', 'held', 'ready', 'retrying', 'deferred']);

export interface FindingsToPlan {
  readonly run: Run;
  readonly pair: Pair;
  readonly configRevision: number | null;
  /** Of a few hundred findings each: one is stored before the next is asked for. */
  readonly pages: AsyncIterable<readonly Finding[]> | Iterable<readonly Finding[]>;
  readonly plan: boolean;
}

/**
 * Stores a run's findings as diffs and, where asked, the compensations for them: the last stage of a run, all in the
 * caller's transaction (DESIGN: one commit of diffs, compensations and the run's end).
 */
export async function planFindings(trx: Db, input: FindingsToPlan): Promise<void> {
  const { run, pair } = input;
  await lockPlanning(trx, run.reconciliation);
  const now = await storeClock(trx);
  const context = { pair, now, runId: run.id, configRevision: input.configRevision };
  for await (const page of input.pages) {
    const findings = page.map((finding) => ({ finding, traceId: traceIdOf(finding, pair.config.traceId) }));
    const saved = await saveDiffs(trx, run, findings, pair.config.relook);
    if (!input.plan) continue;
    const diffs = saved.flatMap((diff, index): DiffToPlan[] => {
      const finding = findings[index]?.finding;
      if (!finding || diff.kind === 'decided' || diff.kind === 'failed') return [];
      return [{ ...diff, finding }];
    });
    await planDiffs(trx, diffs, context);
  }
}

/** The record's own trace id where one is mapped, so that one id follows the record through every line. */
function traceIdOf(finding: Finding, field: string | undefined): string {
  const value = field === undefined ? undefined : (finding.source ?? finding.downstream)?.fields[field];
  if (value === undefined || value.type === 'null' || value.text === '') return newTraceId();
  return mappedTraceId(value.text).traceId;
}

interface DiffToPlan {
  readonly id: string;
  readonly traceId: string;
  readonly finding: Finding;
}

/**
 * Diffs without an open compensation whose key was never used have no history to weigh and are inserted together; a
 * diff that has the same repair under way needs nothing; the rest goes through `planDiff` one by one.
 */
export async function planDiffs(trx: Db, diffs: readonly DiffToPlan[], context: PlanContext): Promise<void> {
  const planned = diffs.map((diff) => ({ diff, plan: planOf(diff, context, 0) }));
  const keys = planned.flatMap(({ plan }) => (plan.plan === 'compensate' ? [plan.idempotencyKey] : []));
  const taken = await usedKeys(trx, keys);
  const underWay = await openFingerprints(
    trx,
    diffs.map(({ id }) => id),
  );
  const fresh: NewCompensation[] = [];
  for (const { diff, plan } of planned) {
    const open = underWay.get(diff.id);
    if (plan.plan === 'compensate' && open?.has(plan.fingerprint)) continue;
    if (plan.plan === 'report' || open !== undefined || taken.has(plan.idempotencyKey)) {
      await planDiff(trx, diff, context);
      continue;
    }
    // A second diff with this key in one round has a history: the first one's row, which is open.
    taken.add(plan.idempotencyKey);
    fresh.push(rowOf(diff, plan, 0, context));
  }
  const ids = await insertCompensations(trx, fresh);
  await recordDiffEvents(
    trx,
    fresh.map((row, index) => plannedEvent(row.diffId, ids[index], row.repair)),
  );
}

export interface PlanContext {
  readonly pair: Pair;
  readonly now: Instant;
  readonly runId: string | null;
  readonly configRevision: number | null;
  /** A person asked for this replay: a definite refusal is tried again under a new revision (rule 6.2). */
  readonly byPerson?: boolean;
}

export type PlanResult =
  | { readonly kind: 'planned'; readonly idempotencyKey: string; readonly target: string }
  /** The same repair is planned already. */
  | { readonly kind: 'unchanged' }
  /** A send of this diff is on its way and must be settled first. */
  | { readonly kind: 'waits' }
  | { readonly kind: 'flapping' | 'conflict' }
  | { readonly kind: 'report'; readonly why: string };

/** Adds the compensation of one diff to the ledger, or says why not (rules 6.2 to 6.4). */
export async function planDiff(
  trx: Db,
  diff: { id: string; traceId: string; finding: Finding },
  context: PlanContext,
): Promise<PlanResult> {
  const first = planOf(diff, context, 0);
  if (first.plan === 'report') {
    await recordDiffEvent(trx, { diffId: diff.id, event: 'not-planned', detail: { why: first.why } });
    return { kind: 'report', why: first.why };
  }
  let held = false;
  for (const open of await openCompensations(trx, diff.id)) {
    if (open.fingerprint === first.fingerprint) return { kind: 'unchanged' };
    if (!REPLACEABLE.has(open.state)) return { kind: 'waits' };
    await changeState(trx, { from: open, event: { type: 'look-changed' }, detail: 'the records changed' });
    held ||= open.state === 'held';
  }
  const history = await compensationHistory(trx, first.idempotencyKey);
  const next = nextRevision({
    history: history.map(asHistory),
    fingerprint: first.fingerprint,
    relapseMs: context.pair.config.relapse,
    byPerson: context.byPerson ?? false,
  });
  if (next.kind === 'open') return { kind: 'waits' };
  const chosen = planOf(diff, context, next.revision);
  if (chosen.plan === 'report') return { kind: 'report', why: chosen.why };
  if (context.byPerson) await forgetUnknown(trx, diff.id);
  const id = only(await insertCompensations(trx, [rowOf(diff, chosen, next.revision, context)]));
  await recordDiffEvents(trx, [plannedEvent(diff.id, id, chosen.repair)]);
  if (next.kind === 'next') {
    // What a person held stays on hold under another plan, until it is released or replayed by a person.
    if (held && !context.byPerson)
      await changeState(trx, { from: { id, state: 'planned' }, event: { type: 'hold' } });
    return { kind: 'planned', idempotencyKey: chosen.idempotencyKey, target: chosen.target };
  }
  await changeState(trx, {
    from: { id, state: 'planned' },
    event: { type: 'escalate', reason: next.kind },
    detail: next.detail,
    // What may have taken stays in the way of other repairs of this key (rule 6.6).
    values: { last_unknown: next.kind === 'conflict' },
  });
  return { kind: next.kind };
}

function planOf(
  diff: { traceId: string; finding: Finding },
  context: PlanContext,
  revision: number,
): CompensationPlan {
  const { pair, now, byPerson = false } = context;
  return planCompensation({
    finding: diff.finding,
    reconciliation: { name: pair.name, config: pair.config },
    now,
    revision,
    traceId: diff.traceId,
    byPerson,
  });
}

function rowOf(
  diff: { id: string; traceId: string; finding: Finding },
  plan: Extract<CompensationPlan, { plan: 'compensate' }>,
  revision: number,
  context: PlanContext,
): NewCompensation {
  return {
    ...plan,
    diffId: diff.id,
    runId: context.runId,
    configRevision: context.configRevision,
    reconciliation: context.pair.name,
    key: diff.finding.key,
    revision,
    traceId: diff.traceId,
  };
}

function plannedEvent(diffId: string, compensationId: string | undefined, repair: string): DiffEvent {
  return {
    diffId,
    ...(compensationId === undefined ? {} : { compensationId }),
    event: 'planned',
    detail: { repair },
  };
}

export function asHistory(row: Compensation) {
  return {
    revision: row.revision,
    state: row.state,
    escalation: row.escalation,
    fingerprint: row.fingerprint,
    lastUnknown: row.lastUnknown,
    endedMsAgo: row.endedMsAgo,
  };
}
