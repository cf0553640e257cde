import { setTimeout as sleep } from 'node:timers/promises';
import type { Outcome, Sender } from '../compensate/action.ts';
import { sentence } from '../compensate/escalate.ts';
import { type GateTiming, mayStart } from '../compensate/gate/watermark.ts';
import { planCompensation } from '../compensate/plan.ts';
import { mayRepeat } from '../compensate/settle.ts';
import type { Repair, Target } from '../config/schema.ts';
import type { Logger } from '../observe/logger.ts';
import { traceparent } from '../observe/tracing.ts';
import type { Finding, Key } from '../reconcile/record.ts';
import { SideError } from '../reconcile/side.ts';
import { type Compensation, changeState, claimQueued } from '../store/compensations.ts';
import { type Db, inTransaction, storeClock } from '../store/database.ts';
import { closeDiff, recordDiffEvent } from '../store/diffs.ts';
import { dropSlot, type Granted, grantSend } from '../store/gates.ts';
import type { Look } from './look-batch.ts';
import type { Pair } from './pair.ts';
import { planDiff } from './plan-findings.ts';
import { recordOutcome } from './record-outcome.ts';

/** Everything a send needs to know about the repair it performs. */
export interface RepairRoute {
  readonly pair: Pair;
  readonly repair: Repair;
  readonly target: Target;
  /** The gate's name: the target's, or its `upstream` that several share (rule 6.16). */
  readonly gate: string;
  readonly sender: Sender;
  readonly look: (key: Key) => Promise<Look>;
}

export interface EndedAttempt {
  readonly compensation: Compensation;
  readonly attempt: number;
  readonly outcome: Outcome;
  /** The event that the compensation took: `accepted`, `retry`, `escalate`, ...; `late` when the lease was lost. */
  readonly result: string;
  readonly gateWaitMs: number;
}

export interface SendDeps {
  readonly db: Db;
  readonly workerId: string;
  readonly configRevision: number | null;
  readonly timing: GateTiming;
  /** `undefined` when the active configuration no longer has this repair. */
  readonly route: (compensation: Compensation) => RepairRoute | undefined;
  readonly takeSlot: (gate: string, target: Target, signal: AbortSignal) => Promise<void>;
  readonly logger: Logger;
  readonly onAttempt: (attempt: EndedAttempt) => void;
  readonly checkpoint: (name: string) => Promise<void>;
  readonly random: () => number;
  /** Aborted when the worker drains: nothing new is started then. */
  readonly draining: AbortSignal;
}

/** A claimed row whose worker says nothing for this long goes back to the ledger. */
export const RING_MS = 30_000;
/** Longest wait for a slot within one job; beyond it the row returns to the ledger. */
const LONGEST_WAIT_MS = 8_000;
const AFTER_FAILED_LOOK_MS = 5_000;

/** The order of a compensation's stages: look -> gate slot -> send -> record. (Looks after a send: settle.ts.) */
export async function runCompensation(deps: SendDeps, job: { id: string; ring: number }): Promise<void> {
  const claimed = await claimQueued(deps.db, job.id, job.ring, deps.workerId, RING_MS);
  if (!claimed) return;
  await deps.checkpoint('after-claim');
  const route = deps.route(claimed);
  if (!route) {
    await end(
      deps,
      claimed,
      { type: 'escalate', reason: 'unplannable' },
      'the configuration no longer has this repair',
    );
    return;
  }
  if (claimed.lastUnknown && !repeatable(claimed, route)) {
    await end(deps, claimed, { type: 'escalate', reason: 'unresolved' }, sentence('unresolved'));
    return;
  }
  const granted = await lookUntilGranted(deps, claimed, route);
  if (!granted) return;
  await deps.checkpoint('after-slot');
  if (!(await waitForSlot(granted))) {
    await dropSlot(deps.db, claimed, granted);
    return;
  }
  const startedMs = performance.now();
  const outcome = await send(deps, claimed, route, granted);
  await deps.checkpoint('after-answer');
  const result = await recordOutcome(deps, { compensation: claimed, route, granted, outcome, startedMs });
  deps.onAttempt({
    compensation: claimed,
    attempt: granted.attempt,
    outcome,
    result,
    gateWaitMs: granted.waitedMs,
  });
}

/** Rule 6.10 once more, now that the repeat would really start: a hold can outlast the target's memory of the key. */
function repeatable(claimed: Compensation, { target, pair }: RepairRoute): boolean {
  const rules = {
    dedupes: target.idempotency.dedupes,
    keyRetentionMs: target.idempotency.keyRetention,
    appliesWithinMs: target.appliesWithin ?? null,
  };
  return mayRepeat(
    claimed.lastSentMsAgo ?? 0,
    rules,
    Math.max(pair.config.source.readLag, pair.config.downstream.readLag),
  );
}

// --------------------------------------------------------------------------------------------- look, then slot

interface GrantedSlot extends Granted {
  readonly finding: Finding;
  readonly m0: number;
  readonly m1: number;
  readonly waitedMs: number;
}

/** Looks and asks in turn, so that the look is never older than `look.maxAge` when the send starts (rule 6.9). */
async function lookUntilGranted(
  deps: SendDeps,
  claimed: Compensation,
  route: RepairRoute,
): Promise<GrantedSlot | null> {
  const since = performance.now();
  const maxAgeMs = route.pair.config.look.maxAge - deps.timing.horizonMs - deps.timing.validMs;
  let look: Look | null = null;
  for (;;) {
    if (look === null || performance.now() - look.takenAtMs > maxAgeMs) {
      look = await lookOrDefer(deps, claimed, route);
      if (look === null) return null;
    }
    if (deps.draining.aborted) return putBack(deps, claimed, 0);
    await route.sender.warm();
    const m0 = performance.now();
    const answer = await grantSend(deps.db, {
      compensation: claimed,
      gate: route.gate,
      target: route.target,
      worker: deps.workerId,
      timing: deps.timing,
    });
    const m1 = performance.now();
    switch (answer.kind) {
      case 'gone':
        return null;
      case 'granted':
        return look.verdict.verdict === 'differs'
          ? { ...answer, finding: look.verdict.finding, m0, m1, waitedMs: m1 - since }
          : null;
      case 'open':
        await changeState(deps.db, {
          from: claimed,
          event: { type: 'defer' },
          dueInMs: answer.delayMs,
          values: { target_down_since: deps.db.raw('coalesce(target_down_since, clock_timestamp())') },
        });
        return null;
      case 'held':
        return putBack(deps, claimed, 1000);
      case 'wait':
        if (m1 - since + answer.delayMs > LONGEST_WAIT_MS) return putBack(deps, claimed, answer.delayMs);
        await sleep(Math.max(1, answer.delayMs));
    }
  }
}

async function putBack(deps: SendDeps, claimed: Compensation, dueInMs: number): Promise<null> {
  await changeState(deps.db, { from: claimed, event: { type: 'put-back' }, dueInMs });
  return null;
}

/** A fresh look, or null when it ended this compensation's turn: healed, changed, or not readable now. */
async function lookOrDefer(deps: SendDeps, claimed: Compensation, route: RepairRoute): Promise<Look | null> {
  let look: Look;
  try {
    look = await route.look(claimed.key);
  } catch (error) {
    if (!(error instanceof SideError)) throw error;
    deps.logger.warn(
      { event: 'look.failed', traceId: claimed.traceId, compensation: claimed.id, err: error },
      'look failed',
    );
    await changeState(deps.db, { from: claimed, event: { type: 'defer' }, dueInMs: AFTER_FAILED_LOOK_MS });
    return null;
  }
  if (look.verdict.verdict === 'match') {
    await healed(deps, claimed);
    return null;
  }
  if (look.verdict.verdict === 'undecided') {
    await changeState(deps.db, {
      from: claimed,
      event: { type: 'defer' },
      dueInMs: AFTER_FAILED_LOOK_MS,
      detail: look.verdict.reason,
    });
    return null;
  }
  return (await stillThePlan(deps, claimed, route, look.verdict.finding)) ? look : null;
}

async function healed(deps: SendDeps, claimed: Compensation): Promise<void> {
  await inTransaction(deps.db, async (trx) => {
    if (!(await changeState(trx, { from: claimed, event: { type: 'look-equal' } }))) return;
    await closeDiff(trx, claimed.diffId, {
      state: 'healed',
      by: 'trueup',
      reason: 'the sides agree; nothing was sent',
    });
  });
  deps.logger.debug(
    { event: 'compensation.healed', traceId: claimed.traceId, compensation: claimed.id },
    'healed already',
  );
}

/** The records may have changed since the plan; then this plan is replaced by one for what they are now (rule 6.2). */
async function stillThePlan(
  deps: SendDeps,
  claimed: Compensation,
  route: RepairRoute,
  finding: Finding,
): Promise<boolean> {
  const now = await storeClock(deps.db);
  const plan = planCompensation({
    finding,
    reconciliation: { name: route.pair.name, config: route.pair.config },
    now,
  });
  if (plan.plan === 'compensate' && plan.fingerprint === claimed.fingerprint) return true;
  await inTransaction(deps.db, async (trx) => {
    const event = { type: 'look-changed' } as const;
    if (!(await changeState(trx, { from: claimed, event, detail: 'the records changed' }))) return;
    await recordDiffEvent(trx, { diffId: claimed.diffId, compensationId: claimed.id, event: 'superseded' });
    await planDiff(
      trx,
      { id: claimed.diffId, traceId: claimed.traceId, finding },
      { pair: route.pair, now, runId: claimed.runId, configRevision: deps.configRevision },
    );
  });
  return false;
}

async function end(
  deps: SendDeps,
  claimed: Compensation,
  event: { type: 'escalate'; reason: 'unplannable' | 'unresolved' },
  detail: string,
): Promise<void> {
  await inTransaction(deps.db, async (trx) => {
    if (!(await changeState(trx, { from: claimed, event, detail }))) return;
    await recordDiffEvent(trx, {
      diffId: claimed.diffId,
      compensationId: claimed.id,
      event: 'escalated',
      detail: { detail },
    });
  });
}

// -------------------------------------------------------------------------------------------------------- send

/** Waits for the slot's start on the monotonic clock. False when its validity passed first (rule 6.14). */
async function waitForSlot(granted: GrantedSlot): Promise<boolean> {
  for (;;) {
    const now = performance.now();
    const may = mayStart(granted, now);
    if (may === 'now') return true;
    if (may === 'late') return false;
    await sleep(Math.max(1, granted.m1 + granted.delayMs - now));
  }
}

async function send(
  deps: SendDeps,
  claimed: Compensation,
  route: RepairRoute,
  granted: GrantedSlot,
): Promise<Outcome> {
  // One deadline for connecting and answering, on the monotonic clock; it ends before the lease does.
  const signal = AbortSignal.timeout(route.target.timeout.answer);
  return route.sender.send(claimed.payload, {
    idempotencyKey: granted.idempotencyKey,
    attempt: granted.attempt,
    traceId: claimed.traceId,
    traceparent: traceparent(claimed.traceId),
    signal,
    diff: granted.finding,
    slot: () => deps.takeSlot(route.gate, route.target, signal),
  });
}
