import type { DiffKind, Finding } from './record.ts';
import { constantShift, type Shift } from './shift.ts';
import type { ReadCounts } from './tally.ts';

export interface GuardPolicy {
  readonly maxDiffs: number;
  /** Share of the larger side's records. */
  readonly maxRatio: number;
  /** Ratios and shrunken sides count from this many records on the larger side. */
  readonly minRecords: number;
}

/** Records read in the window on each side. */
export type SideCounts = Pick<ReadCounts, 'source' | 'downstream'>;

export type Guard =
  | { readonly ok: true }
  | {
      readonly ok: false;
      /** Short stable name. */
      readonly pattern:
        | 'source is empty'
        | 'downstream is empty'
        | 'source has shrunk'
        | 'downstream has shrunk'
        | Shift['kind']
        | 'too many diffs'
        | 'too large a share';
      readonly facts: Readonly<Record<string, string | number>>;
    };

/** A pattern over most of so many mismatched records stands for all. */
export const GUARD_SAMPLE = 1000;
const SHIFTS: ReadonlySet<string> = new Set<Shift['kind']>([
  'constant time offset',
  'constant factor',
  'constant offset',
]);
/** A side that lacks more than this share of the other's records has shrunk; more where `maxRatio` allows more. */
const SHRUNKEN = 0.5;

/** Diffs by kind that no person has decided on. */
export type FoundByKind = Readonly<Record<DiffKind, number>>;

/**
 * Decides whether so many or such diffs may be replayed without a person (blast radius). The most telling pattern is
 * named first: an empty side or a shift of one hour explains a large share, not the other way round. `mismatched` is
 * a sample of the mismatched findings among `found`.
 */
export function guard(
  counts: SideCounts,
  found: FoundByKind,
  mismatched: readonly Pick<Finding, 'fields'>[],
  policy: GuardPolicy,
): Guard {
  const all = found.missing + found.extra + found.mismatched + found.duplicate;
  if (all === 0) return { ok: true };
  return (
    lostSide(counts, found, policy) ??
    shifted(mismatched) ??
    tooMuch(all, Math.max(counts.source, counts.downstream), policy) ?? { ok: true }
  );
}

/**
 * Whether a pattern stops a run that a person released when it showed `released`. The looks after a release can only
 * lower the count, so nothing about size stops it again; a shift that it did not show before does.
 */
export function stopsReleased(pattern: string, released: string): boolean {
  return SHIFTS.has(pattern) && pattern !== released;
}

function lostSide(counts: SideCounts, found: FoundByKind, policy: GuardPolicy): Guard | undefined {
  const { source, downstream } = counts;
  const facts = { source, downstream };
  const least = Math.max(1, policy.minRecords);
  const share = Math.max(SHRUNKEN, policy.maxRatio);
  if (source >= least && found.missing > source * share) {
    return { ok: false, pattern: downstream === 0 ? 'downstream is empty' : 'downstream has shrunk', facts };
  }
  if (downstream >= least && found.extra > downstream * share) {
    return { ok: false, pattern: source === 0 ? 'source is empty' : 'source has shrunk', facts };
  }
  return undefined;
}

function tooMuch(diffs: number, records: number, policy: GuardPolicy): Guard | undefined {
  if (diffs > policy.maxDiffs) {
    return { ok: false, pattern: 'too many diffs', facts: { diffs, maxDiffs: policy.maxDiffs } };
  }
  if (records >= policy.minRecords && diffs > records * policy.maxRatio) {
    return { ok: false, pattern: 'too large a share', facts: { diffs, records, maxRatio: policy.maxRatio } };
  }
  return undefined;
}

function shifted(mismatched: readonly Pick<Finding, 'fields'>[]): Guard | undefined {
  const found = constantShift(mismatched.slice(0, GUARD_SAMPLE));
  if (found === undefined) return undefined;
  const { kind, ...facts } = found;
  return { ok: false, pattern: kind, facts };
}
