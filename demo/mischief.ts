/** What goes wrong with one write call that the gateway would otherwise have done. */
export type Mishap = 'none' | 'error' | 'slow';

/** How long after the first call errors still happen. */
const BAD_TIME_MS = 20_000;

/**
 * Decides which calls go wrong. In the first 20 s one call of every ten fails with a 500 before anything is done;
 * all the time one call of every hundred is answered too late, after the work was done. Which of the ten and of the
 * hundred comes from the seed. No order meets the same mishap twice, so every order gets through.
 */
export class Mischief {
  readonly #errorAt: number;
  readonly #slowAt: number;
  readonly #met = new Set<string>();
  #calls = 0;
  #firstAt: number | undefined;
  #owedErrors = 0;
  #owedSlow = 0;

  constructor(seed: number) {
    this.#errorAt = Math.abs(seed) % 10;
    // Never the same position modulo ten: a late answer and an error do not fall on one call.
    this.#slowAt = ((Math.abs(seed) % 9) * 10 + this.#errorAt + 5) % 100;
  }

  /** `atMs`: when the call arrived, on any steady clock. `ordinary` orders alone are answered late. */
  decide(orderNo: string, atMs: number, ordinary: boolean): Mishap {
    this.#firstAt ??= atMs;
    const call = this.#calls++;
    if (call % 10 === this.#errorAt) this.#owedErrors += 1;
    if (call % 100 === this.#slowAt) this.#owedSlow += 1;
    if (atMs - this.#firstAt >= BAD_TIME_MS) this.#owedErrors = 0;
    if (this.#met.has(orderNo)) return 'none';
    if (this.#owedErrors > 0) {
      this.#owedErrors -= 1;
      this.#met.add(orderNo);
      return 'error';
    }
    if (this.#owedSlow > 0 && ordinary) {
      this.#owedSlow -= 1;
      this.#met.add(orderNo);
      return 'slow';
    }
    return 'none';
  }
}
