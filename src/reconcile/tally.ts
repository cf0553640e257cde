import { EXIT, TrueupError } from '../error.ts';
import { unusableReason } from './compare-records.ts';
import type { SideName } from './diff.ts';
import { UNUSABLE_KEY } from './key.ts';
import type { Finding, Forgiven, Key, Verdict } from './record.ts';

export interface ReadCounts {
  /** Records read in the source's window. */
  readonly source: number;
  /** Records read in the downstream's window; found by lookup where the downstream cannot list a window. */
  readonly downstream: number;
  /** Keys of the source's window that agree on both sides. */
  readonly matched: number;
  readonly missing: number;
  readonly extra: number;
  readonly mismatched: number;
  readonly duplicate: number;
  /** Keys that cannot be judged; records without a usable key count one each. */
  readonly undecided: number;
}

/**
 * How many of the matched keys match only by a rule, by field and rule. A key that a later page shows to be a duplicate
 * is no match any more and may still be counted here.
 */
export interface ForgivenCount extends Forgiven {
  readonly count: number;
}

export interface Undecided {
  readonly key: Key;
  readonly reason: string;
}

/** Collects what a reading saw. Its memory grows with suspects and undecided keys, not with records. */
export class Tally {
  readonly #suspects = new Map<string, Finding>();
  readonly #undecided = new Map<string, Undecided>();
  readonly #records = { source: 0, downstream: 0 };
  readonly #unusable = { source: 0, downstream: 0 };
  readonly #maxSuspects: number;
  readonly #forgiven = new Map<string, ForgivenCount>();
  #matched = 0;

  constructor(maxSuspects: number) {
    this.#maxSuspects = maxSuspects;
  }

  read(side: SideName, records: number): void {
    this.#records[side] += records;
  }

  unusable(side: SideName, records: number): void {
    this.#unusable[side] += records;
  }

  /** True when the key is known as suspect or undecided. */
  has(text: string): boolean {
    return this.#suspects.has(text) || this.#undecided.has(text);
  }

  /** Takes back a match: more records of the key came to light on a later page. */
  unmatch(): void {
    this.#matched -= 1;
  }

  match(forgiven: readonly Forgiven[] = []): void {
    this.#matched += 1;
    for (const { field, rule } of forgiven) {
      const name = JSON.stringify([field, rule]);
      this.#forgiven.set(name, { field, rule, count: (this.#forgiven.get(name)?.count ?? 0) + 1 });
    }
  }

  /** Notes a verdict other than match. A later one replaces an earlier one: it saw more of the key's records. */
  suspect(text: string, verdict: Exclude<Verdict, { verdict: 'match' }>): void {
    this.#suspects.delete(text);
    this.#undecided.delete(text);
    if (verdict.verdict === 'differs') this.#suspects.set(text, verdict.finding);
    else this.#undecided.set(text, { key: verdict.key, reason: verdict.reason });
    if (this.#suspects.size + this.#undecided.size > this.#maxSuspects) this.#giveUp();
  }

  progress(): { source: number; downstream: number; suspects: number } {
    return { ...this.#records, suspects: this.#suspects.size };
  }

  result(): {
    counts: ReadCounts;
    suspects: readonly Finding[];
    undecided: readonly Undecided[];
    forgiven: readonly ForgivenCount[];
  } {
    const kinds = { missing: 0, extra: 0, mismatched: 0, duplicate: 0 };
    for (const finding of this.#suspects.values()) kinds[finding.kind] += 1;
    const { source, downstream } = this.#unusable;
    const undecided = [...this.#undecided.values()];
    if (source + downstream > 0) {
      undecided.push({ key: UNUSABLE_KEY, reason: unusableReason(source, downstream) });
    }
    const counts = {
      ...this.#records,
      matched: this.#matched,
      ...kinds,
      undecided: this.#undecided.size + source + downstream,
    };
    const suspects = [...this.#suspects.values()];
    return { counts, suspects, undecided, forgiven: [...this.#forgiven.values()] };
  }

  #giveUp(): never {
    throw new TrueupError(
      'TRU_TOO_MANY_SUSPECTS',
      `more than ${this.#maxSuspects} records of this window differ; the reading stopped`,
      {
        exit: EXIT.incomplete,
        hint: 'check that both sides hold the same records and that the compare rules fit; then raise maxSuspects',
      },
    );
  }
}
