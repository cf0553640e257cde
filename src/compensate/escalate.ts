import type { EscalationReason } from './state.ts';

/** What a person reads when a diff reaches them: what happened, and what they can do. */
interface Explanation {
  readonly what: string;
  readonly advice: string;
}

const EXPLANATIONS: { readonly [R in EscalationReason]: Explanation } = {
  refused: {
    what: 'The target refused this record, and sending it again cannot help',
    advice: 'Read the answer, correct the record or the repair, then replay or dismiss it',
  },
  exhausted: {
    what: 'Every allowed attempt failed',
    advice: 'Read the attempts, remove the cause, then replay it',
  },
  'gave-up': {
    what: 'The target stayed down for longer than giveUpAfter',
    advice: 'Replay it when the target is well again',
  },
  unresolved: {
    what: 'A send may or may not have taken, no look could tell, and no rule allows to repeat it',
    advice: 'Look at the target yourself: resolve it if it took, replay it if it did not',
  },
  unreadable: {
    what: 'No look could decide for as long as giveUpAfter, so nothing more was sent',
    advice:
      'Make both sides readable, then replay it; a look comes first, and a diff whose sides agree closes by itself',
  },
  'not-taken': {
    what: 'The target said yes, and the change never became visible',
    advice: 'Ask the owner of the target with the idempotency key, then replay or dismiss it',
  },
  flapping: {
    what: 'The same difference came back soon after its repair',
    advice: 'Find out what undoes the repair before you replay it; nothing was sent this time',
  },
  conflict: {
    what: 'The same idempotency key is wanted for another payload while the first may have taken',
    advice: 'Look at the target, settle the first one, then replay or dismiss it; nothing was sent this time',
  },
  unplannable: {
    what: 'The configuration no longer describes this repair',
    advice: 'Restore the repair in the configuration, or dismiss the diff',
  },
};

/** One sentence for lists and chat: what happened. Without a full stop, so that details can follow. */
export function sentence(reason: EscalationReason): string {
  return EXPLANATIONS[reason].what;
}

/** What happened, the detail where there is one, and what a person can do: for the diff's page and the alert. */
export function explainEscalation(reason: EscalationReason, detail: string | null): string {
  const { what, advice } = EXPLANATIONS[reason];
  return `${what}${detail === null || detail === what ? '' : ` (${detail})`}. ${advice}.`;
}
