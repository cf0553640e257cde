import { EXIT, TrueupError } from '../error.ts';
import { compareKeys } from './key.ts';
import { displayKey, type Key, type SideRecord } from './record.ts';

export type SideName = 'source' | 'downstream';
type Pages = AsyncIterable<readonly SideRecord[]>;

/** All records that one key has in the two streams. A key without parts is handed on alone and never paired. */
export interface MergeEvent {
  readonly kind: 'both' | 'sourceOnly' | 'downstreamOnly';
  readonly key: Key;
  readonly source: readonly SideRecord[];
  readonly downstream: readonly SideRecord[];
}

/** A side that claims key order did not keep it. Going on would report differences that do not exist (rule 5.2). */
export class OrderError extends TrueupError {
  override readonly name = 'OrderError';
  readonly side: SideName;
  readonly previous: Key;
  readonly key: Key;

  constructor(side: SideName, previous: Key, key: Key) {
    super(
      'TRU_SIDE_ORDER',
      `the ${side} gave key "${displayKey(key)}" after "${displayKey(previous)}", which is not the order of their bytes`,
      {
        exit: EXIT.incomplete,
        hint: 'the side sorts by a language collation or as numbers; use `plan: lookup`, which needs no order',
      },
    );
    this.side = side;
    this.previous = previous;
    this.key = key;
  }
}

/**
 * Walks two streams in key order side by side. Memory: a page of each and the records of one key. Keys compare as
 * bytes; the first key that is out of order on its stream throws `OrderError`. Both streams are closed at the end,
 * also when the caller stops early.
 */
export async function* mergeStreams(source: Pages, downstream: Pages): AsyncGenerator<MergeEvent> {
  const left = new GroupStream('source', source);
  const right = new GroupStream('downstream', downstream);
  try {
    let [a, b] = await Promise.all([left.next(), right.next()]);
    while (a !== undefined || b !== undefined) {
      const order = orderOf(a, b);
      yield {
        kind: order === 0 ? 'both' : order < 0 ? 'sourceOnly' : 'downstreamOnly',
        key: (order <= 0 ? a : b)?.[0]?.key ?? [],
        source: order <= 0 ? (a ?? []) : [],
        downstream: order >= 0 ? (b ?? []) : [],
      };
      if (order <= 0) a = await left.next();
      if (order >= 0) b = await right.next();
    }
  } finally {
    await Promise.all([left.close(), right.close()]);
  }
}

type Group = readonly SideRecord[] | undefined;

/** Records without a usable key come first and alone, from whichever side has one. */
function orderOf(a: Group, b: Group): number {
  const [x, y] = [a?.[0]?.key, b?.[0]?.key];
  if (x === undefined) return 1;
  if (y === undefined) return -1;
  if (x.length === 0) return -1;
  if (y.length === 0) return 1;
  return compareKeys(x, y);
}

/** Cuts a stream of pages into the records of one key each, across page borders, and asserts its order. */
class GroupStream {
  readonly #side: SideName;
  readonly #pages: AsyncIterator<readonly SideRecord[]>;
  #page: readonly SideRecord[] = [];
  #at = 0;
  #previous: Key | undefined;

  constructor(side: SideName, pages: Pages) {
    this.#side = side;
    this.#pages = pages[Symbol.asyncIterator]();
  }

  async next(): Promise<readonly SideRecord[] | undefined> {
    const first = await this.#peek();
    if (first === undefined) return undefined;
    this.#at += 1;
    if (first.key.length === 0) return [first];
    if (this.#previous !== undefined && compareKeys(this.#previous, first.key) > 0) {
      throw new OrderError(this.#side, this.#previous, first.key);
    }
    this.#previous = first.key;
    const group = [first];
    for (;;) {
      const record = this.#page[this.#at] ?? (await this.#peek());
      if (record === undefined || compareKeys(record.key, first.key) !== 0) return group;
      group.push(record);
      this.#at += 1;
    }
  }

  async #peek(): Promise<SideRecord | undefined> {
    while (this.#at >= this.#page.length) {
      const { done, value } = await this.#pages.next();
      if (done === true) return undefined;
      this.#page = value;
      this.#at = 0;
    }
    return this.#page[this.#at];
  }

  async close(): Promise<void> {
    await this.#pages.return?.();
  }
}
