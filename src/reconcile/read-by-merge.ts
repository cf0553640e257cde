import { comparePage } from './compare-page.ts';
import { compareKey } from './compare-records.ts';
import { type MergeEvent, mergeStreams, type SideName } from './diff.ts';
import { isUsableKey } from './key.ts';
import type { ReadInput } from './read-window.ts';
import { keyText, type SideRecord } from './record.ts';
import type { Tally } from './tally.ts';

/** Keys that only one side has in its window are probed on the other side in batches of this size. */
const PROBE_BATCH = 1000;

/**
 * Merges the two windows in key order. A key that only one window holds is looked up on the other side before it is
 * judged: a record stamped just outside the window is not missing (rule 5.9). Throws `OrderError`, or what a side
 * throws.
 */
export async function readByMerge(input: ReadInput, tally: Tally): Promise<void> {
  const { source, downstream, window, signal } = input;
  const sourceOnly: MergeEvent[] = [];
  const downstreamOnly: MergeEvent[] = [];
  const events = mergeStreams(
    counted('source', source.scan(window, signal), input, tally),
    counted('downstream', downstream.scan(window, signal), input, tally),
  );
  for await (const event of events) {
    if (!isUsableKey(event.key)) {
      tally.unusable('source', event.source.length);
      tally.unusable('downstream', event.downstream.length);
    } else if (event.kind === 'both') {
      judgeBoth(event, input, tally);
    } else if (event.kind === 'sourceOnly') {
      sourceOnly.push(event);
      if (sourceOnly.length >= PROBE_BATCH) await probeDownstream(sourceOnly.splice(0), input, tally);
    } else {
      downstreamOnly.push(event);
      if (downstreamOnly.length >= PROBE_BATCH) await probeSource(downstreamOnly.splice(0), input, tally);
    }
  }
  await probeDownstream(sourceOnly, input, tally);
  await probeSource(downstreamOnly, input, tally);
}

function judgeBoth(event: MergeEvent, input: ReadInput, tally: Tally): void {
  const verdict = compareKey(event.key, event.source, event.downstream, input);
  if (verdict.verdict === 'match') tally.match(verdict.forgiven);
  else tally.suspect(keyText(event.key), verdict);
}

async function probeDownstream(events: readonly MergeEvent[], input: ReadInput, tally: Tally): Promise<void> {
  if (events.length === 0) return;
  const keys = events.map((event) => event.key);
  const found = await input.downstream.lookup(keys, input.signal);
  const own = events.flatMap((event) => event.source);
  for (const [text, verdict] of comparePage(keys, own, found, input)) {
    if (verdict.verdict === 'match') tally.match(verdict.forgiven);
    else tally.suspect(text, verdict);
  }
}

async function probeSource(events: readonly MergeEvent[], input: ReadInput, tally: Tally): Promise<void> {
  if (events.length === 0) return;
  const keys = events.map((event) => event.key);
  const found = await input.source.lookup(keys, input.signal);
  const own = events.flatMap((event) => event.downstream);
  for (const [text, verdict] of comparePage(keys, found, own, input)) {
    if (verdict.verdict !== 'match') tally.suspect(text, verdict);
  }
}

async function* counted(
  side: SideName,
  pages: AsyncIterable<readonly SideRecord[]>,
  input: ReadInput,
  tally: Tally,
): AsyncGenerator<readonly SideRecord[]> {
  for await (const page of pages) {
    tally.read(side, page.length);
    input.onProgress?.(tally.progress());
    yield page;
  }
}
