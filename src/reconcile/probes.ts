import { comparePage } from './compare-page.ts';
import type { MergeEvent, SideName } from './diff.ts';
import type { ReadInput } from './read-window.ts';
import type { SideRecord } from './record.ts';
import type { Tally } from './tally.ts';

/** Keys are looked up in batches of this size. */
const BATCH = 1000;

/**
 * Keys that the windows alone do not decide. A key that only one window holds is looked up on the other side before it
 * is judged: a record stamped just outside the window is not missing (rule 5.9). A side whose rows are not the whole
 * records is looked up too.
 */
export class Probes {
  readonly #input: ReadInput;
  readonly #tally: Tally;
  readonly #whole: Readonly<Record<SideName, boolean>>;
  readonly #waiting: Readonly<Record<MergeEvent['kind'], MergeEvent[]>> = {
    both: [],
    sourceOnly: [],
    downstreamOnly: [],
  };

  constructor(input: ReadInput, tally: Tally, whole = { source: true, downstream: true }) {
    this.#input = input;
    this.#tally = tally;
    this.#whole = whole;
  }

  async add(event: MergeEvent): Promise<void> {
    const waiting = this.#waiting[event.kind];
    waiting.push(event);
    if (waiting.length >= BATCH) await this.#probe(event.kind, waiting.splice(0));
  }

  async flush(): Promise<void> {
    for (const kind of ['both', 'sourceOnly', 'downstreamOnly'] as const) {
      await this.#probe(kind, this.#waiting[kind].splice(0));
    }
  }

  async #probe(kind: MergeEvent['kind'], events: readonly MergeEvent[]): Promise<void> {
    if (events.length === 0) return;
    const [source, downstream] = await Promise.all([
      this.#records('source', events, kind === 'downstreamOnly'),
      this.#records('downstream', events, kind === 'sourceOnly'),
    ]);
    const keys = events.map((event) => event.key);
    for (const [text, verdict] of comparePage(keys, source, downstream, this.#input)) {
      if (verdict.verdict !== 'match') this.#tally.suspect(text, verdict);
      // Matches count the keys of the source's window.
      else if (kind !== 'downstreamOnly') this.#tally.match();
    }
  }

  async #records(
    side: SideName,
    events: readonly MergeEvent[],
    absent: boolean,
  ): Promise<readonly SideRecord[]> {
    if (!absent && this.#whole[side]) return events.flatMap((event) => event[side]);
    const keys = events.map((event) => event.key);
    return this.#input[side].lookup(keys, this.#input.signal);
  }
}
