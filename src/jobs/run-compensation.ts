import { setTimeout as sleep } from 'node:timers/promises';
import type { Outcome, Sender } from '../compensate/action.ts';
import { type GateTiming, mayStart } from '../compensate/gate/watermark.ts';
import { mayRepeat } from '../compensate/settle.ts';
import type { EscalationReason } from '../compensate/state.ts';
import type { Repair, Target } from '../config/schema.ts';
import type { Logger } from '../observe/logger.ts';
import { traceparent } from '../observe/tracing.ts';
import type { CompareContext } from '../reconcile/compare-records.ts';
import type { Finding, Key } from '../reconcile/record.ts';
import { type Compensation, changeState, claimQueued } from '../store/compensations.ts';
import type { Db } from '../store/database.ts';
import { dropSlot } from '../store/grants.ts';
import { postponeSettle } from '../store/sent.ts';
import { handOver } from './give-up.ts';
import { type GrantedSlot, lookAndAsk } from './look-and-ask.ts';
import type { Look } from './look-batch.ts';
import { type Paces, waitForPace } from './pace.ts';
import type { Pair } from './pair.ts';
import { recordHealed, recordResend, recordSeen, recordUndecided } from './record-look.ts';
import { recordOpen, recordOutcome } from './record-outcome.ts';
import { anotherRound, isPlanned, replaceChanged } from './replan.ts';
import { lookAtSent, type Settled } from './settle.ts';
import type { Times } from './times.ts';
import type { Turns } from './turns.ts';

/** Everything a send needs to know about the repair it performs. */
export interface RepairRoute {
  readonly pair: Pair;
  readonly repair: Repair;
  readonly target: Target;
  /** The gate's name: the target's, or its `upstream` that several share (rule 6.16). */
  readonly gate: string;
  readonly sender: Sender;
  readonly look: (key: Key) => Promise<Look>;
  readonly turns: Turns;
}

export interface EndedAttempt {
  readonly compensation: Compensation;
  readonly attempt: number;
  readonly outcome: Outcome;
  /** The event that the compensation took: `accepted`, `retry`, `escalate`, ...; `late` when the lease was lost. */
  readonly result: string;
  readonly gateWaitMs: number;
}

export interface EndedByLook {
  readonly compensation: Compensation;
  readonly result: 'verified' | 'healed' | EscalationReason;
}

export interface SendDeps {
  readonly db: Db;
  readonly workerId: string;
  readonly version: string;
  readonly configRevision: number | null;
  readonly timing: GateTiming;
  readonly times: Times;
  /** True when this process works by the active configuration (rule 7.1). */
  readonly isActive: () => Promise<boolean>;
  /** `undefined` when this process's configuration does not have this repair. */
  readonly route: (compensation: Compensation) => RepairRoute | undefined;
  readonly takeSlot: (
    route: Pick<RepairRoute, 'gate' | 'target'>,
    compensation: Compensation,
    signal: AbortSignal,
  ) => Promise<void>;
  readonly paces: Paces;
  readonly logger: Logger;
  readonly onAttempt: (attempt: EndedAttempt) => void;
  /** A compensation ended by a look, not by an answer. */
  readonly onEnded: (ended: EndedByLook) => void;
  readonly checkpoint: (name: string) => Promise<void>;
  readonly random: () => number;
  /** Aborted when the worker drains: nothing new is started then. */
  readonly draining: AbortSignal;
}

/** A row that this process's configuration does not know is left to others for this long. */
const NOT_MINE_MS = 5_000;

/** The order of a compensation's stages: look -> gate slot -> send -> record. */
export async function runCompensation(deps: SendDeps, job: { id: string; ring: number }): Promise<void> {
  const claimed = await claimQueued(deps.db, job.id, job.ring, deps.workerId, deps.times.ring);
  if (!claimed) return;
  await deps.checkpoint('after-claim');
  const route = deps.route(claimed);
  if (!route && !(await deps.isActive())) {
    // Another process works by the configuration that knows it.
    await changeState(deps.db, { from: claimed, event: { type: 'put-back' }, dueInMs: NOT_MINE_MS });
    return;
  }
  if (!route) {
    return handOver(deps, claimed, 'unplannable');
  }
  if (claimed.lastUnknown && !repeatable(claimed, route)) {
    return handOver(deps, claimed, 'unresolved');
  }
  const leavePace = await waitForPace(deps, claimed);
  if (leavePace === null) return;
  const place = route.turns.take();
  const planned = (finding: Finding) => isPlanned(claimed, route.pair, finding);
  const turned = await lookAndAsk(deps, claimed, route, place, planned).finally(leavePace);
  switch (turned.kind) {
    case 'granted':
      try {
        await sendGranted(deps, claimed, route, turned.slot);
      } finally {
        place.ended();
      }
      return;
    case 'equal':
      return recordHealed(deps, claimed);
    case 'changed':
      return replaceChanged(deps, claimed, route.pair, turned.finding);
    case 'undecided':
      return recordUndecided(deps, claimed, route, turned.why);
    case 'open':
      return recordOpen(deps, claimed, turned.delayMs);
    case 'back':
      await changeState(deps.db, {
        from: claimed,
        event: { type: 'put-back' },
        dueInMs: turned.dueInMs,
        values: { undecided_since: null },
      });
      return;
    case 'gone':
      return;
  }
}

/**
 * The order after a send: looks -> what they decided. Returns how many rows it looked at; the caller asks again at once
 * when that is a full batch.
 */
export async function settleDue(
  deps: SendDeps,
  pair: Pair,
  look: CompareContext,
  signal: AbortSignal,
): Promise<number> {
  const settled = await lookAtSent(deps, pair, look, signal);
  if (settled.length > 0) await deps.checkpoint('before-settle');
  for (const one of settled) await recordSettled(deps, pair, one);
  return settled.length;
}

function recordSettled(deps: SendDeps, pair: Pair, settled: Settled): Promise<void> {
  const { row } = settled;
  switch (settled.event) {
    case 'look-later':
      return postponeSettle(deps.db, row.id, settled);
    case 'seen':
      return recordSeen(deps, row);
    case 'resend':
      return recordResend(deps, row);
    case 'replaced':
      return anotherRound(deps, row, pair, settled.finding);
    case 'escalate':
      return handOver(deps, row, settled.reason, settled.detail);
  }
}

// -------------------------------------------------------------------------------------------------------- send

async function sendGranted(
  deps: SendDeps,
  claimed: Compensation,
  route: RepairRoute,
  granted: GrantedSlot,
): Promise<void> {
  await deps.checkpoint('after-slot');
  if (!(await waitForSlot(granted)) || !maySend(route, granted)) {
    await dropSlot(deps.db, claimed, granted);
    return;
  }
  const startedMs = performance.now();
  const outcome = await send(deps, claimed, route, granted);
  await deps.checkpoint('after-answer');
  const result = await recordOutcome(deps, { compensation: claimed, route, granted, outcome, startedMs });
  const { attempt, waitedMs } = granted;
  deps.onAttempt({ compensation: claimed, attempt, outcome, result, gateWaitMs: waitedMs });
}

/** The last word before the call, in the same breath: the look is fresh (6.9), and a connection is open (6.14). */
function maySend(route: RepairRoute, granted: GrantedSlot): boolean {
  if (performance.now() - granted.lookedAtMs > route.pair.config.look.maxAge) return false;
  return route.sender.ready();
}

/** Rule 6.10 once more, now that the repeat would really start: a hold can outlast the target's memory of the key. */
function repeatable(claimed: Compensation, { target, pair }: RepairRoute): boolean {
  const rules = {
    dedupes: target.idempotency.dedupes,
    keyRetentionMs: target.idempotency.keyRetention,
    appliesWithinMs: target.appliesWithin ?? null,
  };
  return mayRepeat(
    { sendMs: claimed.lastSentMsAgo ?? 0, unknownMs: claimed.unknownForMs ?? claimed.lastSentMsAgo ?? 0 },
    rules,
    Math.max(pair.config.source.readLag, pair.config.downstream.readLag),
  );
}

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
    slot: () => deps.takeSlot(route, claimed, signal),
  });
}
