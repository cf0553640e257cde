import type { Rule } from '../config/schema.ts';
import { EXIT, TrueupError } from '../error.ts';
import { OrderError } from './diff.ts';
import { readByLookup } from './read-by-lookup.ts';
import { readByMerge } from './read-by-merge.ts';
import type { Finding, Window } from './record.ts';
import type { Side } from './side.ts';
import { type ForgivenCount, type ReadCounts, Tally, type Undecided } from './tally.ts';

export type { ReadCounts, Undecided } from './tally.ts';

export interface ReadInput {
  readonly window: Window;
  readonly source: Side;
  readonly downstream: Side;
  readonly plan: 'auto' | 'merge' | 'lookup';
  readonly rules: Readonly<Record<string, Rule>>;
  readonly digestKey: string;
  /** The reading stops with an error when more keys than this are suspect or undecided; they are kept in memory. Left out: no limit. */
  readonly maxSuspects?: number;
  readonly signal: AbortSignal;
  /** Called after each page with what was read so far. */
  readonly onProgress?: (progress: { source: number; downstream: number; suspects: number }) => void;
}

export interface Plan {
  readonly name: 'merge' | 'lookup';
  /** One sentence for people. */
  readonly why: string;
}

export interface ReadResult {
  /** A reading that did not see everything throws; there is no other value (rule 5.3). */
  readonly complete: true;
  readonly counts: ReadCounts;
  readonly suspects: readonly Finding[];
  readonly undecided: readonly Undecided[];
  /** What only rules made equal, so that nothing is forgiven unseen. */
  readonly forgiven: readonly ForgivenCount[];
  readonly plan: Plan;
}

/**
 * Reads one window on both sides and compares it. Memory is bounded by suspects, not by records. Any error of a side
 * is thrown: then the window is incomplete, and nothing may be concluded from it.
 */
export async function readWindow(input: ReadInput): Promise<ReadResult> {
  const plan = choosePlan(input);
  if (plan.name === 'lookup') return read(input, plan);
  try {
    return await read(input, plan);
  } catch (error) {
    if (input.plan !== 'auto' || !(error instanceof OrderError)) throw error;
    return read(input, { name: 'lookup', why: `the merge ended, since ${error.message}` });
  }
}

async function read(input: ReadInput, plan: Plan): Promise<ReadResult> {
  const tally = new Tally(input.maxSuspects ?? Number.POSITIVE_INFINITY);
  const context = { ...input, digestMatches: false };
  await (plan.name === 'merge' ? readByMerge(context, tally) : readByLookup(context, tally));
  return { complete: true, ...tally.result(), plan };
}

/** The plan that the two sides allow, and why. Throws `TrueupError` when the asked one cannot be done. */
export function choosePlan(input: Pick<ReadInput, 'source' | 'downstream' | 'plan'>): Plan {
  const { source, downstream, plan } = input;
  if (!source.canScan) {
    throw new TrueupError('TRU_NO_WINDOW', `${source.label} cannot list the records of a window`, {
      exit: EXIT.usage,
      hint: 'give the source a `time` column, or a `list` call',
    });
  }
  const obstacle = [source, downstream].find((side) => !side.canScan || !side.ordered);
  if (plan === 'lookup') return { name: 'lookup', why: 'asked for' };
  if (obstacle === undefined) {
    return {
      name: 'merge',
      why: plan === 'merge' ? 'asked for' : 'both sides list their window in key order',
    };
  }
  const why = `${obstacle.label} cannot list a window in key order`;
  if (plan === 'auto') return { name: 'lookup', why };
  throw new TrueupError('TRU_NO_MERGE', `plan merge is not possible: ${why}`, {
    exit: EXIT.usage,
    hint: 'use `plan: auto` or `plan: lookup`',
  });
}
