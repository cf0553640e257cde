import { compareKey } from './compare-records.ts';
import { type MergeEvent, mergeStreams, type SideName } from './diff.ts';
import { isUsableKey } from './key.ts';
import { Probes } from './probes.ts';
import type { ReadInput } from './read-window.ts';
import { keyText, type SideRecord } from './record.ts';
import type { Tally } from './tally.ts';

/**
 * Merges the two windows in key order. A key that only one window holds is looked up on the other side before it is
 * judged: a record stamped just outside the window is not missing (rule 5.9). Throws `OrderError`, or what a side
 * throws.
 */
export async function readByMerge(input: ReadInput, tally: Tally): Promise<void> {
  const { source, downstream, window, signal } = input;
  const probes = new Probes(input, tally);
  const events = mergeStreams(
    counted('source', source.scan(window, signal), input, tally),
    counted('downstream', downstream.scan(window, signal), input, tally),
  );
  for await (const event of events) {
    if (!isUsableKey(event.key)) {
      tally.unusable('source', event.source.length);
      tally.unusable('downstream', event.downstream.length);
    } else if (event.kind === 'both') judgeBoth(event, input, tally);
    else await probes.add(event);
  }
  await probes.flush();
}

function judgeBoth(event: MergeEvent, input: ReadInput, tally: Tally): void {
  const verdict = compareKey(event.key, event.source, event.downstream, input);
  if (verdict.verdict === 'match') tally.match();
  else tally.suspect(keyText(event.key), verdict);
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
