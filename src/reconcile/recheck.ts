import type { DiffKind, Finding, Verdict } from './record.ts';

/** What the last look at a suspect saw. */
export interface Witnessed {
  readonly kind: DiffKind;
  readonly sourceDigest: string | null;
  readonly downstreamDigest: string | null;
  /** Looks so far, the first reading included; 0 when what is known comes from before this run. */
  readonly looks: number;
}

export interface RecheckPolicy {
  /** Pause before the first look after the reading, in ms; later pauses double, up to 16 times this. */
  readonly delayMs: number;
  /** Looks, the first reading included, after which a record whose source keeps moving is given up as undecided. */
  readonly looks: number;
}

export type RecheckResult =
  | { readonly next: 'healed' }
  | { readonly next: 'diff'; readonly finding: Finding }
  | {
      readonly next: 'look-again';
      readonly afterMs: number;
      readonly looks: number;
      readonly sourceDigest: string | null;
      readonly downstreamDigest: string | null;
    }
  | { readonly next: 'undecided'; readonly reason: string; readonly finding: Finding | null };

const LONGEST_PAUSE = 16;

/**
 * Decides about a suspect after a fresh look at both sides (rule 5.11). It becomes a diff only when it still differs
 * and its source did not move since the look before: only then was the downstream given time for what it shows.
 */
export function recheck(witnessed: Witnessed, verdict: Verdict, policy: RecheckPolicy): RecheckResult {
  if (verdict.verdict === 'match') return { next: 'healed' };
  if (verdict.verdict === 'undecided') {
    return { next: 'undecided', reason: verdict.reason, finding: verdict.finding };
  }
  const { finding } = verdict;
  if (witnessed.looks > 0 && finding.sourceDigest === witnessed.sourceDigest)
    return { next: 'diff', finding };
  const looks = witnessed.looks + 1;
  if (looks >= policy.looks) {
    return { next: 'undecided', reason: `the source moved at each of ${looks} looks`, finding };
  }
  return {
    next: 'look-again',
    afterMs: policy.delayMs * Math.min(2 ** (looks - 1), LONGEST_PAUSE),
    looks,
    sourceDigest: finding.sourceDigest,
    downstreamDigest: finding.downstreamDigest,
  };
}
