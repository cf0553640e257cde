import { compareKeys, isUsableKey } from '../../src/reconcile/key.ts';
import { type Key, keyText, type SideRecord, type Window } from '../../src/reconcile/record.ts';
import type { Side, SideClock, SideDescription } from '../../src/reconcile/side.ts';

export interface ArraySideOptions {
  readonly pageSize?: number;
  readonly canScan?: boolean;
  readonly ordered?: boolean;
  /** Sorts the scan; left out: by the bytes of the keys when `ordered`, else not at all. */
  readonly sort?: (a: SideRecord, b: SideRecord) => number;
}

/** A side over an array that the test owns and may change between calls. Counts what was asked. */
export class ArraySide implements Side {
  readonly label: string;
  readonly canScan: boolean;
  readonly ordered: boolean;
  readonly records: SideRecord[];
  lookedUp = 0;
  openScans = 0;
  readonly #pageSize: number;
  readonly #sort: ArraySideOptions['sort'];

  constructor(label: string, records: readonly SideRecord[], options: ArraySideOptions = {}) {
    this.label = label;
    this.records = [...records];
    this.canScan = options.canScan ?? true;
    this.ordered = options.ordered ?? true;
    this.#pageSize = options.pageSize ?? 100;
    this.#sort = options.sort ?? (this.ordered ? (a, b) => compareKeys(a.key, b.key) : undefined);
  }

  async *scan(window: Window, signal: AbortSignal): AsyncGenerator<readonly SideRecord[]> {
    this.openScans += 1;
    try {
      const inside = this.records.filter(
        ({ time }) => time !== null && time >= window.from && time < window.to,
      );
      if (this.#sort !== undefined) inside.sort(this.#sort);
      for (let at = 0; at < inside.length; at += this.#pageSize) {
        signal.throwIfAborted();
        yield inside.slice(at, at + this.#pageSize);
      }
    } finally {
      this.openScans -= 1;
    }
  }

  async lookup(keys: readonly Key[], signal: AbortSignal): Promise<readonly SideRecord[]> {
    signal.throwIfAborted();
    this.lookedUp += keys.length;
    const wanted = new Set(keys.filter(isUsableKey).map(keyText));
    return this.records.filter((record) => wanted.has(keyText(record.key)));
  }

  async clock(): Promise<SideClock> {
    throw new Error('an array has no clock');
  }

  async describe(): Promise<SideDescription> {
    return { label: this.label, columns: [], notes: [], warnings: [], samples: this.records.slice(0, 3) };
  }

  async close(): Promise<void> {}
}
