import { setTimeout as sleep } from 'node:timers/promises';
import type { Finding } from '../reconcile/record.ts';
import { SideError } from '../reconcile/side.ts';
import type { Compensation } from '../store/compensations.ts';
import { type Granted, grantSend } from '../store/grants.ts';
import type { Look } from './look-batch.ts';
import type { RepairRoute, SendDeps } from './run-compensation.ts';
import type { Place } from './turns.ts';

/** Longest wait for a slot within one turn; beyond it the row returns to the ledger. */
const LONGEST_WAIT_MS = 8_000;
/** A first look may be slow because its side was not connected yet; the second says that the side is. */
const MOST_SLOW_LOOKS = 2;

export interface GrantedSlot extends Granted {
  readonly finding: Finding;
  /** Monotonic: the look is at least this fresh. */
  readonly lookedAtMs: number;
  readonly waitedMs: number;
}

/** How a compensation's turn before its send ended. */
export type Turned =
  | { readonly kind: 'granted'; readonly slot: GrantedSlot }
  /** The sides agree. */
  | { readonly kind: 'equal' }
  /** They differ in another way than was planned for. */
  | { readonly kind: 'changed'; readonly finding: Finding }
  /** No look could say whether they do. */
  | { readonly kind: 'undecided'; readonly why: string }
  /** The breaker is open. */
  | { readonly kind: 'open'; readonly delayMs: number }
  /** Held, draining, or no slot is near: the target's or that of its own run. */
  | { readonly kind: 'back'; readonly dueInMs: number }
  /** Cancelled meanwhile, or no longer this job's. */
  | { readonly kind: 'gone' };

/** What a look showed of a record that still needs its repair. */
interface Seen {
  readonly kind: 'seen';
  readonly finding: Finding;
  readonly takenAtMs: number;
}

/**
 * A look when the turn is near, then the slot. A look that would be older than `look.maxAge` when the call starts is
 * taken again (rule 6.9), outside the turn, so that a slow one keeps nobody else waiting. Leaves the place in any case.
 */
export async function lookAndAsk(
  deps: SendDeps,
  claimed: Compensation,
  route: RepairRoute,
  place: Place,
  isPlanned: (finding: Finding) => boolean,
): Promise<Turned> {
  const since = performance.now();
  let turned: Turned | null = null;
  try {
    await place.near;
    let askingSince: number | null = null;
    while (turned === null) {
      // Its ring is over: the sweep takes the row back, and looking for it would only delay the others.
      if (performance.now() - since > deps.times.ring) {
        turned = { kind: 'gone' };
        break;
      }
      const seen = await freshLook(deps, claimed, route, place, isPlanned);
      if (seen.kind !== 'seen') {
        turned = seen;
        break;
      }
      await place.turn();
      askingSince ??= performance.now();
      turned = await askWhileFresh(deps, claimed, route, seen, { since, askingSince });
      if (turned === null) place.stepBack();
    }
    return turned;
  } finally {
    place.leave(turned?.kind === 'granted');
  }
}

// -------------------------------------------------------------------------------------------------------- look

/** How much longer a call that starts late in its slot may still be based on this look. */
function freshForMs(deps: SendDeps, route: RepairRoute, takenAtMs: number): number {
  return takenAtMs + route.pair.config.look.maxAge - deps.timing.validMs - performance.now();
}

async function freshLook(
  deps: SendDeps,
  claimed: Compensation,
  route: RepairRoute,
  place: Place,
  isPlanned: (finding: Finding) => boolean,
): Promise<Seen | Turned> {
  let tookMs = 0;
  for (let looks = 1; looks <= MOST_SLOW_LOOKS; looks++) {
    const beganMs = performance.now();
    const look = await lookOnce(deps, claimed, route, place);
    if ('why' in look) return { kind: 'undecided', why: look.why };
    if (look.verdict.verdict === 'match') return { kind: 'equal' };
    if (look.verdict.verdict === 'undecided') return { kind: 'undecided', why: look.verdict.reason };
    const { finding } = look.verdict;
    if (!isPlanned(finding)) return { kind: 'changed', finding };
    if (freshForMs(deps, route, look.takenAtMs) > 0)
      return { kind: 'seen', finding, takenAtMs: look.takenAtMs };
    tookMs = performance.now() - beganMs;
  }
  const why = `a look took ${Math.round(tookMs)} ms, too long for look.maxAge (${route.pair.config.look.maxAge} ms)`;
  return { kind: 'undecided', why };
}

/** One look, waited for no longer than it can be of use: while it is fresh, and the queue still counts on this job. */
async function lookOnce(
  deps: SendDeps,
  claimed: Compensation,
  route: RepairRoute,
  place: Place,
): Promise<Look | { readonly why: string }> {
  const slow = setTimeout(() => place.letPass(), route.pair.config.look.maxAge);
  const patienceMs = Math.max(route.pair.config.look.maxAge, deps.times.ring / 3);
  const answered = new AbortController();
  const tooLong = sleep(patienceMs, null, { signal: answered.signal }).catch(() => null);
  try {
    const look = await Promise.race([route.look(claimed.key), tooLong]);
    return look ?? { why: `a look gave no answer within ${Math.round(patienceMs)} ms` };
  } catch (error) {
    if (!(error instanceof SideError)) throw error;
    deps.logger.warn(
      { event: 'look.failed', traceId: claimed.traceId, compensation: claimed.id, err: error },
      'look failed',
    );
    return { why: error.message };
  } finally {
    answered.abort();
    clearTimeout(slow);
  }
}

// --------------------------------------------------------------------------------------------------------- ask

/** Asks for a slot until there is an answer; null when the look grew too old first. */
async function askWhileFresh(
  deps: SendDeps,
  claimed: Compensation,
  route: RepairRoute,
  seen: Seen,
  began: { readonly since: number; readonly askingSince: number },
): Promise<Turned | null> {
  for (;;) {
    if (deps.draining.aborted) return { kind: 'back', dueInMs: 0 };
    await route.sender.warm();
    const mostAheadMs = freshForMs(deps, route, seen.takenAtMs);
    if (mostAheadMs <= 0) return null;
    const answer = await grantSend(deps.db, {
      compensation: claimed,
      gate: route.gate,
      target: route.target,
      worker: deps.workerId,
      timing: deps.timing,
      leaseMarginMs: deps.times.sendMargin,
      mostAheadMs,
    });
    const now = performance.now();
    switch (answer.kind) {
      case 'gone':
        return { kind: 'gone' };
      case 'granted': {
        const { finding, takenAtMs: lookedAtMs } = seen;
        return { kind: 'granted', slot: { ...answer, finding, lookedAtMs, waitedMs: now - began.since } };
      }
      case 'open':
        return { kind: 'open', delayMs: answer.delayMs };
      case 'held':
        return { kind: 'back', dueInMs: 1000 };
      case 'paced':
        return { kind: 'back', dueInMs: answer.delayMs };
      case 'wait':
        if (now - began.askingSince + answer.delayMs > LONGEST_WAIT_MS)
          return { kind: 'back', dueInMs: answer.delayMs };
        await sleep(Math.max(1, answer.delayMs));
    }
  }
}
