import type { Rule } from '../config/schema.ts';
import { EXIT, TrueupError } from '../error.ts';
import { OrderError, type SideName } from './diff.ts';
import { fitLayouts, type RawFit } from './raw/layout.ts';
import { readByLookup } from './read-by-lookup.ts';
import { readByMerge } from './read-by-merge.ts';
import { readByRaw } from './read-by-raw.ts';
import type { Finding, Window } from './record.ts';
import type { RawSource, Side } from './side.ts';
import { type ReadCounts, Tally, type Undecided } from './tally.ts';

export type { ReadCounts, Undecided } from './tally.ts';

export interface ReadInput {
  readonly window: Window;
  readonly source: Side;
  readonly downstream: Side;
  readonly plan: 'auto' | 'raw' | 'merge' | 'lookup';
  readonly rules: Readonly<Record<string, Rule>>;
  readonly digestKey: string;
  /** The reading stops with an error when more keys than this are suspect or undecided; they are kept in memory. Left out: no limit. */
  readonly maxSuspects?: number;
  readonly signal: AbortSignal;
  /** Called after each page with what was read so far. */
  readonly onProgress?: (progress: { source: number; downstream: number; suspects: number }) => void;
}

export interface Plan {
  readonly name: 'raw' | 'merge' | 'lookup';
  /** One sentence for people. */
  readonly why: string;
}

export interface ReadResult {
  /** A reading that did not see everything throws; there is no other value (rule 5.3). */
  readonly complete: true;
  readonly counts: ReadCounts;
  readonly suspects: readonly Finding[];
  readonly undecided: readonly Undecided[];
  readonly plan: Plan;
}

/**
 * Reads one window on both sides and compares it. Memory is bounded by suspects, not by records. Any error of a side
 * is thrown: then the window is incomplete, and nothing may be concluded from it.
 */
export async function readWindow(input: ReadInput): Promise<ReadResult> {
  const chosen = await choose(input);
  try {
    return await read(input, chosen);
  } catch (error) {
    if (input.plan !== 'auto' || !(error instanceof OrderError)) throw error;
    const why = `the ${chosen.plan.name} ended, since ${error.message}`;
    return read(input, { plan: { name: 'lookup', why } });
  }
}

async function read(input: ReadInput, { plan, raw }: Choice): Promise<ReadResult> {
  const tally = new Tally(input.maxSuspects ?? Number.POSITIVE_INFINITY);
  const context = { ...input, digestMatches: false };
  if (raw !== undefined) await readByRaw(context, raw.sources, raw.fit, tally);
  else await (plan.name === 'merge' ? readByMerge(context, tally) : readByLookup(context, tally));
  return { complete: true, ...tally.result(), plan };
}

type Asked = Pick<ReadInput, 'source' | 'downstream' | 'plan' | 'signal'>;

interface Choice {
  readonly plan: Plan;
  /** Left out for the plans that read records. */
  readonly raw?: { readonly sources: Record<SideName, RawSource>; readonly fit: RawFit };
}

/**
 * The plan that the two sides allow, and why. May ask their catalogues. Throws `TrueupError` when the asked one cannot
 * be done, and what a side throws.
 */
export async function choosePlan(input: Asked): Promise<Plan> {
  return (await choose(input)).plan;
}

async function choose(input: Asked): Promise<Choice> {
  const { source, downstream, plan } = input;
  if (!source.canScan) {
    throw new TrueupError('TRU_NO_WINDOW', `${source.label} cannot list the records of a window`, {
      exit: EXIT.usage,
      hint: 'give the source a `time` column, or a `list` call',
    });
  }
  if (plan === 'lookup') return { plan: { name: 'lookup', why: 'asked for' } };
  const unordered = [source, downstream].find((side) => !side.canScan || !side.ordered);
  const noMerge =
    unordered === undefined ? undefined : `${unordered.label} cannot list a window in key order`;
  if (plan === 'merge') {
    if (noMerge !== undefined) throw impossible('merge', noMerge);
    return { plan: { name: 'merge', why: 'asked for' } };
  }
  const raw = await fitRaw(input);
  if (typeof raw !== 'string') {
    const why = 'both sides give their rows in key order, and equal bytes are equal values';
    return { plan: { name: 'raw', why: plan === 'raw' ? 'asked for' : why }, raw };
  }
  if (plan === 'raw') throw impossible('raw', raw);
  if (noMerge !== undefined) return { plan: { name: 'lookup', why: noMerge } };
  return { plan: { name: 'merge', why: `both sides list their window in key order; not raw, since ${raw}` } };
}

/** What plan raw needs, or a sentence about what stands in its way. */
async function fitRaw({ source, downstream, signal }: Asked): Promise<NonNullable<Choice['raw']> | string> {
  if (source.raw === undefined) return `${source.label} does not give the bytes of its rows`;
  if (downstream.raw === undefined) return `${downstream.label} does not give the bytes of its rows`;
  const sources = { source: source.raw, downstream: downstream.raw };
  const [left, right] = await Promise.all([sources.source.layout(signal), sources.downstream.layout(signal)]);
  if (typeof left === 'string') return `at the source ${left}`;
  if (typeof right === 'string') return `downstream ${right}`;
  const fit = fitLayouts(left, right);
  return typeof fit === 'string' ? fit : { sources, fit };
}

function impossible(plan: 'raw' | 'merge', why: string): TrueupError {
  return new TrueupError(
    plan === 'raw' ? 'TRU_NO_RAW' : 'TRU_NO_MERGE',
    `plan ${plan} is not possible: ${why}`,
    { exit: EXIT.usage, hint: plan === 'raw' ? 'use `plan: auto`' : 'use `plan: auto` or `plan: lookup`' },
  );
}
