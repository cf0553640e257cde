import { compareKey } from './compare-records.ts';
import { type MergeEvent, OrderError, type SideName } from './diff.ts';
import { Probes } from './probes.ts';
import { FrameCompare, type RawStep } from './raw/compare-frames.ts';
import { compareFramesBy } from './raw/frame-key.ts';
import type { RawFit } from './raw/layout.ts';
import type { ReadInput } from './read-window.ts';
import { keyText } from './record.ts';
import type { RawSource, RawStream } from './side.ts';
import type { Tally } from './tally.ts';

type Both<T> = Readonly<Record<SideName, T>>;

const SIDES = ['source', 'downstream'] as const;

/** Progress is told after so many records. */
const PROGRESS_EVERY = 5000;

/**
 * Compares the two windows by the bytes of their rows, in key order. Rows whose bytes differ are read as records and
 * judged as the merge judges them (rule 5.4). Throws `OrderError`, or what a side throws.
 */
export async function readByRaw(
  input: ReadInput,
  sources: Both<RawSource>,
  fit: RawFit,
  tally: Tally,
): Promise<void> {
  const streams = await openBoth(input, sources, fit);
  try {
    await walk(streams, input, fit, tally);
    // What comes after the last row may still be an error.
    await Promise.all(SIDES.map((side) => streams[side].close()));
  } catch (error) {
    for (const side of SIDES) streams[side].discard();
    throw error;
  }
}

async function openBoth(
  { window, signal }: ReadInput,
  sources: Both<RawSource>,
  { format }: RawFit,
): Promise<Both<RawStream>> {
  const [source, downstream] = await Promise.allSettled(
    SIDES.map((side) => sources[side].open(window, format, signal)),
  );
  if (source?.status === 'fulfilled' && downstream?.status === 'fulfilled') {
    return { source: source.value, downstream: downstream.value };
  }
  for (const opened of [source, downstream]) if (opened?.status === 'fulfilled') opened.value.discard();
  throw source?.status === 'rejected'
    ? source.reason
    : downstream?.status === 'rejected'
      ? downstream.reason
      : null;
}

async function walk(streams: Both<RawStream>, input: ReadInput, fit: RawFit, tally: Tally): Promise<void> {
  const { source, downstream } = streams;
  const onDisorder = (side: SideName, previous: Buffer, row: Buffer): never => {
    throw new OrderError(side, streams[side].read(previous).key, streams[side].read(row).key);
  };
  const order = compareFramesBy(fit.format, fit.parts);
  const compare = new FrameCompare(source.frames, downstream.frames, order, onDisorder);
  const whole = { source: source.whole, downstream: downstream.whole };
  const probes = new Probes(input, tally, whole);
  const progress = new Progress(streams, input, tally);
  for (;;) {
    const step = compare.next();
    switch (step.step) {
      case 'equal':
        tally.match(step.keys);
        break;
      case 'unusable':
        tally.unusable(step.side, 1);
        break;
      case 'rows': {
        const event = eventOf(step, streams);
        if (!isDecided(event, whole, input, tally)) await probes.add(event);
        break;
      }
      case 'more':
        progress.note();
        source.flow();
        downstream.flow();
        await streams[step.side].more();
        break;
      case 'end':
        await probes.flush();
        progress.note();
        return;
    }
  }
}

function eventOf(step: Extract<RawStep, { step: 'rows' }>, streams: Both<RawStream>): MergeEvent {
  const source = step.source.map((payload) => streams.source.read(payload));
  const downstream = step.downstream.map((payload) => streams.downstream.read(payload));
  const [first] = step.kind === 'downstreamOnly' ? downstream : source;
  return { kind: step.kind, key: first?.key ?? [], source, downstream };
}

/** Judges a key that both windows hold, unless the verdict would need what was not copied. */
function isDecided(event: MergeEvent, whole: Both<boolean>, input: ReadInput, tally: Tally): boolean {
  if (event.kind !== 'both') return false;
  const verdict = compareKey(event.key, event.source, event.downstream, input);
  if (verdict.verdict === 'match') tally.match();
  else if (!(whole.source && whole.downstream)) return false;
  else tally.suspect(keyText(event.key), verdict);
  return true;
}

/** Counts the rows that came, and tells of them now and then. */
class Progress {
  readonly #streams: Both<RawStream>;
  readonly #input: ReadInput;
  readonly #tally: Tally;
  readonly #counted = { source: 0, downstream: 0 };
  #told = 0;

  constructor(streams: Both<RawStream>, input: ReadInput, tally: Tally) {
    this.#streams = streams;
    this.#input = input;
    this.#tally = tally;
  }

  note(): void {
    for (const side of SIDES) {
      const { rows } = this.#streams[side].frames;
      this.#tally.read(side, rows - this.#counted[side]);
      this.#counted[side] = rows;
    }
    const { source, downstream } = this.#counted;
    if (source + downstream - this.#told < PROGRESS_EVERY) return;
    this.#told = source + downstream;
    this.#input.onProgress?.(this.#tally.progress());
  }
}
