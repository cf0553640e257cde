import { comparePage, groupByKey } from './compare-page.ts';
import type { SideName } from './diff.ts';
import { isUsableKey } from './key.ts';
import type { ReadInput } from './read-window.ts';
import { type Key, keyFromText, type SideRecord, type Window } from './record.ts';
import { SeenKeys } from './seen-keys.ts';
import type { Side } from './side.ts';
import type { Tally } from './tally.ts';

/**
 * Lists the window of the source and looks each page's keys up downstream; then, where the downstream can list its
 * own window, looks its keys up at the source, which finds `extra` and what was edited downstream only (rule 5.9).
 * Needs no order. Throws what a side throws.
 */
export async function readByLookup(input: ReadInput, tally: Tally): Promise<void> {
  await readSource(input, tally);
  if (input.downstream.canScan) await readDownstream(input, tally);
}

async function readSource(input: ReadInput, tally: Tally): Promise<void> {
  const { source, downstream, window, signal } = input;
  const seen = new SeenKeys();
  for await (const page of source.scan(window, signal)) {
    const groups = await wholeGroups('source', page, input, tally, seen);
    const keys = [...groups.keys()].map(keyFromText);
    const found = await downstream.lookup(keys, signal);
    if (!downstream.canScan) tally.read('downstream', found.length);
    for (const [text, verdict] of comparePage(keys, recordsOf(groups), found, input)) {
      if (verdict.verdict !== 'match') {
        if (groups.get(text)?.judged === true && !tally.has(text)) tally.unmatch();
        tally.suspect(text, verdict);
      } else if (!tally.has(text)) tally.match(verdict.forgiven);
    }
    input.onProgress?.(tally.progress());
  }
}

async function readDownstream(input: ReadInput, tally: Tally): Promise<void> {
  const { source, downstream, window, signal } = input;
  const seen = new SeenKeys();
  for await (const page of downstream.scan(window, signal)) {
    const groups = await wholeGroups('downstream', page, input, tally, seen);
    // What is known to differ stays as it is, unless this page brought a second record of the key to light.
    const open = [...groups].filter(([text, { records }]) => !tally.has(text) || records.length > 1);
    const keys = open.map(([text]) => keyFromText(text));
    const found = await source.lookup(keys, signal);
    for (const [text, verdict] of comparePage(keys, found, recordsOf(groups), input)) {
      if (verdict.verdict !== 'match') tally.suspect(text, verdict);
    }
    input.onProgress?.(tally.progress());
  }
}

interface Group {
  readonly records: readonly SideRecord[];
  /** True when another page of this scan has given records of the key before. */
  readonly judged: boolean;
}

/**
 * The page's records by key. A key that stands twice, here or on an earlier page, is read again by key, so that all
 * its records are judged together and a duplicate that straddles pages is not missed.
 */
async function wholeGroups(
  name: SideName,
  page: readonly SideRecord[],
  input: ReadInput,
  tally: Tally,
  seen: SeenKeys,
): Promise<Map<string, Group>> {
  const usable = page.filter((record) => isUsableKey(record.key));
  tally.read(name, page.length);
  tally.unusable(name, page.length - usable.length);
  const onPage = groupByKey(usable);
  const repeated = [...onPage].filter(([text, records]) => seen.add(text) || records.length > 1);
  const again = await readAgain(
    input[name],
    repeated.map(([text]) => keyFromText(text)),
    input.signal,
  );
  const groups = new Map<string, Group>();
  for (const [text, records] of onPage) groups.set(text, { records, judged: false });
  for (const [text, records] of repeated) {
    const whole = again.get(text) ?? [];
    groups.set(text, { records: whole, judged: countIn(input.window, whole) > records.length });
  }
  return groups;
}

async function readAgain(
  side: Side,
  keys: readonly Key[],
  signal: AbortSignal,
): Promise<Map<string, SideRecord[]>> {
  return keys.length === 0 ? new Map() : groupByKey(await side.lookup(keys, signal));
}

function recordsOf(groups: ReadonlyMap<string, Group>): readonly SideRecord[] {
  return [...groups.values()].flatMap((group) => group.records);
}

/** Records without a time cannot be shown to stand outside. */
function countIn(window: Window, records: readonly SideRecord[]): number {
  return records.filter(({ time }) => time === null || (time >= window.from && time < window.to)).length;
}
