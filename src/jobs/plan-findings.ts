import { nextRevision } from '../compensate/identity.ts';
import { planCompensation } from '../compensate/plan.ts';
import { mappedTraceId, newTraceId } from '../observe/tracing.ts';
import type { Instant } from '../reconcile/instant.ts';
import type { Finding } from '../reconcile/record.ts';
import {
  type Compensation,
  changeState,
  compensationHistory,
  forgetUnknown,
  insertCompensation,
  openCompensations,
} from '../store/compensations.ts';
import { type Db, storeClock } from '../store/database.ts';
import { recordDiffEvent, saveDiff } from '../store/diffs.ts';
import type { Run } from '../store/runs.ts';
import type { Pair } from './pair.ts';

/** States in which a plan can still be replaced by a better one: nothing of it has left. */
const REPLACEABLE = new Set(['planned', 'held', 'ready', 'retrying', 'deferred']);

/**
 * Stores a run's findings as diffs and, where asked, the compensations for them: the last stage of a run, all in the
 * caller's transaction (DESIGN: one commit of diffs, compensations and the run's end).
 */
export async function planFindings(
  trx: Db,
  input: { run: Run; pair: Pair; configRevision: number | null; findings: readonly Finding[]; plan: boolean },
): Promise<void> {
  const { run, pair } = input;
  const now = await storeClock(trx);
  for (const finding of input.findings) {
    const diff = await saveDiff(trx, run, finding, {
      traceId: traceIdOf(finding, pair.config.traceId),
      relookMs: pair.config.relook,
    });
    if (diff.kind === 'decided' || !input.plan) continue;
    await planDiff(
      trx,
      { ...diff, finding },
      { pair, now, runId: run.id, configRevision: input.configRevision },
    );
  }
}

/** The record's own trace id where one is mapped, so that one id follows the record through every line. */
function traceIdOf(finding: Finding, field: string | undefined): string {
  const value = field === undefined ? undefined : (finding.source ?? finding.downstream)?.fields[field];
  if (value === undefined || value.type === 'null' || value.text === '') return newTraceId();
  return mappedTraceId(value.text).traceId;
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
  const { pair, now } = context;
  const plan = (revision: number) =>
    planCompensation({
      finding: diff.finding,
      reconciliation: { name: pair.name, config: pair.config },
      now,
      revision,
      traceId: diff.traceId,
      byPerson: context.byPerson ?? false,
    });
  const first = plan(0);
  if (first.plan === 'report') {
    await recordDiffEvent(trx, { diffId: diff.id, event: 'not-planned', detail: { why: first.why } });
    return { kind: 'report', why: first.why };
  }
  for (const open of await openCompensations(trx, diff.id)) {
    if (open.fingerprint === first.fingerprint) return { kind: 'unchanged' };
    if (!REPLACEABLE.has(open.state)) return { kind: 'waits' };
    await changeState(trx, { from: open, event: { type: 'look-changed' }, detail: 'the records changed' });
  }
  const history = await compensationHistory(trx, first.idempotencyKey);
  const next = nextRevision({
    history: history.map(asHistory),
    fingerprint: first.fingerprint,
    relapseMs: pair.config.relapse,
    byPerson: context.byPerson ?? false,
  });
  if (next.kind === 'open') return { kind: 'waits' };
  const chosen = plan(next.revision);
  if (chosen.plan === 'report') return { kind: 'report', why: chosen.why };
  if (context.byPerson) await forgetUnknown(trx, diff.id);
  const id = await insertCompensation(trx, {
    ...chosen,
    diffId: diff.id,
    runId: context.runId,
    configRevision: context.configRevision,
    reconciliation: pair.name,
    key: diff.finding.key,
    revision: next.revision,
    traceId: diff.traceId,
  });
  await recordDiffEvent(trx, {
    diffId: diff.id,
    compensationId: id,
    event: 'planned',
    detail: { repair: chosen.repair },
  });
  if (next.kind === 'next')
    return { kind: 'planned', idempotencyKey: chosen.idempotencyKey, target: chosen.target };
  await changeState(trx, {
    from: { id, state: 'planned' },
    event: { type: 'escalate', reason: next.kind },
    detail: next.detail,
  });
  return { kind: next.kind };
}

function asHistory(row: Compensation) {
  return {
    revision: row.revision,
    state: row.state,
    escalation: row.escalation,
    fingerprint: row.fingerprint,
    lastUnknown: row.lastUnknown,
    endedMsAgo: row.endedMsAgo,
  };
}
