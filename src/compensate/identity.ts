import type { StateName } from './state.ts';

/** One earlier compensation with the same idempotency key. */
export interface PastCompensation {
  readonly revision: number;
  readonly state: StateName;
  /** An `EscalationReason`, as the store keeps it. */
  readonly escalation: string | null;
  readonly fingerprint: string;
  /** Its last attempt may have happened, and no look has settled it. */
  readonly lastUnknown: boolean;
  /** Milliseconds since it ended; null while it is open. */
  readonly endedMsAgo: number | null;
}

export type NextRevision =
  /** Plan it under this revision. */
  | { readonly kind: 'next'; readonly revision: number }
  /** An earlier one is not settled: nothing may be planned now. */
  | { readonly kind: 'open' }
  /** Goes to a person without a send. `revision` is the number for the row that says so. */
  | { readonly kind: 'flapping' | 'conflict'; readonly revision: number; readonly detail: string };

export interface IdentityInput {
  /** Everything that ever had this idempotency key, in any order. */
  readonly history: readonly PastCompensation[];
  /** Of the payload that is wanted now. */
  readonly fingerprint: string;
  /** A diff that is back within this after its repair is flapping. */
  readonly relapseMs: number;
  /** A person asked for this replay. */
  readonly byPerson: boolean;
}

/** So many repairs of one record that took within `relapse`, each with another payload, are no coincidence either. */
const MOST_ROUNDS = 3;

/**
 * The revision under which a repair may be planned (rules 6.2 to 6.4).
 *
 * - It is kept where the payload is the same and nothing was refused for good: after a discard (`cancelled`), after
 *   `healed`, after spent retries, and on a person's replay of an unknown outcome.
 * - It rises by one on a changed payload, on a person's replay after a definite refusal, on a relapse later than
 *   `relapseMs`, and after `superseded` (whose row stands for a plan that was replaced).
 * - A payload that changed while the last attempt is unknown is a `conflict`: the old one may have taken.
 * - The same repair again within `relapseMs` after it took is `flapping`; so is a third one with whatever payload.
 * - What is in front of a person stays there until the person replays it or the payload changes.
 */
export function nextRevision(input: IdentityInput): NextRevision {
  const { history, byPerson } = input;
  if (history.some((past) => past.endedMsAgo === null)) return { kind: 'open' };
  const last = latestOf(history);
  if (last === undefined) return { kind: 'next', revision: 0 };
  const keep: NextRevision = { kind: 'next', revision: last.revision };
  const rise: NextRevision = { kind: 'next', revision: last.revision + 1 };
  const same = last.fingerprint === input.fingerprint;
  if (tookEffect(last)) return afterEffect(last, same, input);
  // Whatever came after it: a send that may have taken decides until a look or a person settled it.
  const unsettled = latestOf(history.filter((past) => past.lastUnknown && !tookEffect(past)));
  if (unsettled !== undefined) return afterUnknown(unsettled, last.revision, input);
  if (!same || last.state === 'superseded') return rise;
  if (last.state !== 'escalated') return keep;
  switch (last.escalation) {
    case 'refused':
    case 'flapping':
    case 'conflict':
      return byPerson ? rise : { kind: 'open' };
    case 'unplannable':
      return keep;
    default:
      return byPerson ? keep : { kind: 'open' };
  }
}

/** The highest revision; of several rows with one revision the one that ended last. */
function latestOf(history: readonly PastCompensation[]): PastCompensation | undefined {
  return history.toSorted((a, b) => b.revision - a.revision || (a.endedMsAgo ?? 0) - (b.endedMsAgo ?? 0))[0];
}

/** Seen, or accepted. An unknown send after which the sides agreed counts as one that took. */
function tookEffect(last: PastCompensation): boolean {
  return (
    last.state === 'verified' ||
    last.escalation === 'not-taken' ||
    (last.state === 'healed' && last.lastUnknown)
  );
}

function afterUnknown(unsettled: PastCompensation, latest: number, input: IdentityInput): NextRevision {
  const revision = latest + 1;
  if (unsettled.fingerprint !== input.fingerprint) {
    const detail = `revision ${unsettled.revision} may have taken, and the repair is another one now`;
    return { kind: 'conflict', revision, detail };
  }
  if (input.byPerson || unsettled.state === 'cancelled')
    return { kind: 'next', revision: unsettled.revision };
  return { kind: 'open' };
}

function afterEffect(last: PastCompensation, same: boolean, input: IdentityInput): NextRevision {
  const revision = last.revision + 1;
  if (input.byPerson) return { kind: 'next', revision };
  const recent = input.history.filter(
    (past) => past.state === 'verified' && (past.endedMsAgo ?? 0) <= input.relapseMs,
  );
  if (same && (last.endedMsAgo ?? 0) <= input.relapseMs) {
    const detail =
      last.escalation !== 'not-taken'
        ? `the repair took, and the same difference is back ${minutes(last.endedMsAgo)} later`
        : `the target accepted it ${minutes(last.endedMsAgo)} ago, and the difference is still there`;
    return { kind: 'flapping', revision, detail };
  }
  if (recent.length >= MOST_ROUNDS)
    return {
      kind: 'flapping',
      revision,
      detail: `${recent.length} repairs of this record took, and it differs again`,
    };
  return { kind: 'next', revision };
}

function minutes(ms: number | null): string {
  return `${Math.round((ms ?? 0) / 60_000)} min`;
}
