import type { MergeEvent, SideName } from '../diff.ts';
import { FRAME_HEAD, type FrameBuffer, frameLength } from './frame-buffer.ts';
import type { CompareFrames } from './frame-key.ts';

export type RawStep =
  /** Nothing can be said before more rows of this side arrived. */
  | { readonly step: 'more'; readonly side: SideName }
  /** So many keys have one row on each side, with the same bytes. */
  | { readonly step: 'equal'; readonly keys: number }
  /** A row whose key is null or empty. It may be looked at until more rows arrive. */
  | { readonly step: 'unusable'; readonly side: SideName; readonly row: Buffer }
  /** All rows of one key, where they are not the same. They may be looked at until more rows arrive. */
  | {
      readonly step: 'rows';
      readonly kind: MergeEvent['kind'];
      readonly source: readonly Buffer[];
      readonly downstream: readonly Buffer[];
    }
  | { readonly step: 'end' };

/** Told when rows are out of order, with the payloads of both; throws. */
export type OnDisorder = (side: SideName, previous: Buffer, row: Buffer) => never;

/** The rows of one key: their end, relative to their start, and their number. */
interface Group {
  end: number;
  rows: number;
  /** A row without a usable key stands between it and the next key. */
  hidden: boolean;
}

/**
 * Walks two copies in key order side by side. Where their bytes are the same, whole spans are compared at once and only
 * the keys of neighbours are looked at: that each stream is in order, and that no key stands twice. Pure: it asks for
 * more rows and never waits.
 */
export class FrameCompare {
  readonly #streams: Readonly<Record<SideName, Stream>>;
  readonly #compare: CompareFrames;

  constructor(source: FrameBuffer, downstream: FrameBuffer, compare: CompareFrames, onDisorder: OnDisorder) {
    this.#compare = compare;
    this.#streams = {
      source: new Stream('source', source, compare, onDisorder),
      downstream: new Stream('downstream', downstream, compare, onDisorder),
    };
  }

  next(): RawStep {
    const { source, downstream } = this.#streams;
    const keys = this.#skipEqual(source, downstream);
    if (keys > 0) return { step: 'equal', keys };
    for (const stream of [source, downstream]) {
      if (!stream.hasRow && !stream.ended) return { step: 'more', side: stream.side };
      const row = stream.hasRow ? stream.takeUnusable() : undefined;
      if (row !== undefined) return { step: 'unusable', side: stream.side, row };
    }
    if (!source.hasRow && !downstream.hasRow) return { step: 'end' };
    return this.#nextKey(source, downstream);
  }

  /** Consumes rows that are the same on both sides, but for the last: its key may go on in a row to come. */
  #skipEqual({ frames: a }: Stream, { frames: b }: Stream): number {
    const length = Math.min(a.whole - a.start, b.whole - b.start);
    if (length === 0) return 0;
    const { bytes } = a;
    const limit = a.start + equalPrefix(bytes, a.start, b.bytes, b.start, length);
    let keys = 0;
    let at = a.start;
    if (at === limit) return 0;
    let next = at + frameLength(bytes, at);
    while (next + FRAME_HEAD <= limit) {
      const end = next + frameLength(bytes, next);
      // Null keys, repeated keys and rows out of order are left to the slow way, which also says which it is.
      if (end > limit || !(this.#compare(bytes, next, bytes, at) > 0)) break;
      keys += 1;
      at = next;
      next = end;
    }
    if (keys === 0) return 0;
    // Both consumed counts are the same; the places are not.
    const consumed = at - a.start;
    this.#streams.source.consume(consumed);
    this.#streams.downstream.consume(consumed);
    return keys;
  }

  #nextKey(source: Stream, downstream: Stream): RawStep {
    const order = this.#order(source, downstream);
    const left = order <= 0 ? source.group() : NO_ROWS;
    if (left === undefined) return { step: 'more', side: 'source' };
    const right = order >= 0 ? downstream.group() : NO_ROWS;
    if (right === undefined) return { step: 'more', side: 'downstream' };
    const rows = { source: source.take(left), downstream: downstream.take(right) };
    if (order !== 0) return { step: 'rows', kind: order < 0 ? 'sourceOnly' : 'downstreamOnly', ...rows };
    const [[a], [b]] = [rows.source, rows.downstream];
    const same = left.rows === 1 && right.rows === 1 && a !== undefined && b !== undefined && a.equals(b);
    return same ? { step: 'equal', keys: 1 } : { step: 'rows', kind: 'both', ...rows };
  }

  #order({ frames: a }: Stream, { frames: b }: Stream): number {
    if (a.start === a.whole) return 1;
    if (b.start === b.whole) return -1;
    return this.#compare(a.bytes, a.start, b.bytes, b.start);
  }
}

const NO_ROWS: Readonly<Group> = { end: 0, rows: 0, hidden: false };

/** One side of the comparison: cuts its rows into the groups of one key, and asserts their order. */
class Stream {
  readonly side: SideName;
  readonly frames: FrameBuffer;
  readonly #compare: CompareFrames;
  readonly #onDisorder: OnDisorder;
  /** How far the rows of the first key were followed; kept while more rows are waited for. */
  #group: Group = { ...NO_ROWS };
  /** The last row before one without a usable key, which hides it from its neighbour. */
  #before: Buffer | null = null;

  constructor(side: SideName, frames: FrameBuffer, compare: CompareFrames, onDisorder: OnDisorder) {
    this.side = side;
    this.frames = frames;
    this.#compare = compare;
    this.#onDisorder = onDisorder;
  }

  get hasRow(): boolean {
    return this.frames.start < this.frames.whole;
  }

  get ended(): boolean {
    return this.frames.state === 'done';
  }

  consume(length: number): void {
    this.frames.consumeTo(this.frames.start + length);
    this.#group = { ...NO_ROWS };
  }

  /** Consumes the first row when its key cannot be used. Else checks it against the last usable one. */
  takeUnusable(): Buffer | undefined {
    const { bytes, start } = this.frames;
    if (Number.isNaN(this.#compare(bytes, start, bytes, start))) {
      const row = rowAt(bytes, start);
      this.consume(row.length);
      return row.subarray(FRAME_HEAD);
    }
    if (this.#before !== null) {
      if (!(this.#compare(bytes, start, this.#before, 0) > 0)) this.#fail(this.#before, 0, bytes, start);
      this.#before = null;
    }
    return undefined;
  }

  /** The rows of the first key; undefined while more may come. */
  group(): Group | undefined {
    const { bytes, start, whole } = this.frames;
    const group = this.#group;
    if (group.rows === 0) {
      group.end = frameLength(bytes, start);
      group.rows = 1;
    }
    for (;;) {
      const next = start + group.end;
      if (next === whole) return this.ended ? group : undefined;
      const order = this.#compare(bytes, next, bytes, start);
      if (order < 0) this.#fail(bytes, start, bytes, next);
      if (order !== 0) {
        group.hidden = Number.isNaN(order);
        return group;
      }
      group.end += frameLength(bytes, next);
      group.rows += 1;
    }
  }

  /** Consumes a group and gives the payloads of its rows. */
  take(group: Readonly<Group>): readonly Buffer[] {
    const { bytes, start } = this.frames;
    const payloads: Buffer[] = [];
    for (let at = start; at < start + group.end; at += frameLength(bytes, at)) {
      payloads.push(rowAt(bytes, at).subarray(FRAME_HEAD));
    }
    if (group.hidden) this.#before = Buffer.from(rowAt(bytes, start));
    if (group.rows > 0) this.consume(group.end);
    return payloads;
  }

  #fail(previous: Buffer, at: number, bytes: Buffer, bt: number): never {
    const payload = (from: Buffer, place: number) => rowAt(from, place).subarray(FRAME_HEAD);
    return this.#onDisorder(this.side, payload(previous, at), payload(bytes, bt));
  }
}

function rowAt(bytes: Buffer, at: number): Buffer {
  return bytes.subarray(at, at + frameLength(bytes, at));
}

const FIRST_STRIDE = 256;
/** What is looked at again when it holds a difference. */
const LONGEST_STRIDE = 16 * 1024;
const SHORT = 64;

/** How many bytes are the same from these two places on, at most `length`. */
function equalPrefix(a: Buffer, at: number, b: Buffer, bt: number, length: number): number {
  const same = (from: number, to: number) => a.compare(b, bt + from, bt + to, at + from, at + to) === 0;
  let low = 0;
  let stride = FIRST_STRIDE;
  let high = Math.min(stride, length);
  // Gallops to a span that holds the first difference, then halves it.
  while (same(low, high)) {
    if (high === length) return length;
    low = high;
    stride = Math.min(stride * 2, LONGEST_STRIDE);
    high = Math.min(low + stride, length);
  }
  while (high - low > SHORT) {
    const middle = (low + high) >>> 1;
    if (same(low, middle)) low = middle;
    else high = middle;
  }
  while (low < high && a[at + low] === b[bt + low]) low += 1;
  return low;
}
