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
const SAMPLE = 1000;
/** A side that lacks more than this share of the other's records has shrunk; more where `maxRatio` allows more. */
const SHRUNKEN = 0.5;

/**
 * Decides whether so many or such diffs may be replayed without a person (blast radius). The most telling pattern is
 * named first: an empty side or a shift of one hour explains a large share, not the other way round.
 */
export function guard(counts: SideCounts, findings: readonly Finding[], policy: GuardPolicy): Guard {
  if (findings.length === 0) return { ok: true };
  return (
    lostSide(counts, findings, policy) ??
    shifted(findings) ??
    tooMuch(findings.length, Math.max(counts.source, counts.downstream), policy) ?? { ok: true }
  );
}

function lostSide(counts: SideCounts, findings: readonly Finding[], policy: GuardPolicy): Guard | undefined {
  const { source, downstream } = counts;
  const facts = { source, downstream };
  const least = Math.max(1, policy.minRecords);
  const share = Math.max(SHRUNKEN, policy.maxRatio);
  if (source >= least && count(findings, 'missing') > source * share) {
    return { ok: false, pattern: downstream === 0 ? 'downstream is empty' : 'downstream has shrunk', facts };
  }
  if (downstream >= least && count(findings, 'extra') > downstream * share) {
    return { ok: false, pattern: source === 0 ? 'source is empty' : 'source has shrunk', facts };
  }
  return undefined;
}

function count(findings: readonly Finding[], kind: DiffKind): number {
  return findings.reduce((sum, finding) => sum + (finding.kind === kind ? 1 : 0), 0);
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

function shifted(findings: readonly Finding[]): Guard | undefined {
  const mismatched = findings.filter((finding) => finding.kind === 'mismatched').slice(0, SAMPLE);
  const found = constantShift(mismatched);
  if (found === undefined) return undefined;
  const { kind, ...facts } = found;
  return { ok: false, pattern: kind, facts };
}
