/**
 * Turns at one gate within this process. One asker at a time asks the store for a slot: many at once would wait for
 * the gate's row lock, and with it let the validity of their own slots pass (the time between asking and the answer
 * counts against it, rule 6.14). The turn goes to the first in line of those that ask for it, so a place whose look
 * takes long keeps its place in line and holds up nobody. A place is `near` when few others are before it, so that
 * the look before the send is taken late enough to be fresh and early enough to be there when the turn comes.
 */
export interface Place {
  /** Resolves when few others are ahead. */
  readonly near: Promise<void>;
  /** Asks for the turn. Resolves when it is this place's, and fewer than `concurrency` calls are in flight. */
  turn(): Promise<void>;
  /** Its look takes long: the next in line is near in its stead, until this place asks for the turn. */
  letPass(): void;
  /** Gives the turn to the next who asks, and keeps the place in line: ask again when ready. */
  stepBack(): void;
  /** The place is given up: the next may ask. With `sending`, the call counts as in flight until `ended`. */
  leave(sending: boolean): void;
  /** The call has ended. */
  ended(): void;
}

interface Waiting {
  readonly setNear: () => void;
  /** There while this place asks for the turn. */
  setTurn: (() => void) | null;
  letsPass: boolean;
}

export class Turns {
  readonly #concurrency: number;
  readonly #nearness: number;
  /** In order of arrival, the one whose turn it is too. */
  readonly #line: Waiting[] = [];
  #holder: Waiting | null = null;
  #inFlight = 0;

  /** `nearness`: how many places in line are near. */
  constructor(options: { concurrency: number; nearness: number }) {
    this.#concurrency = options.concurrency;
    this.#nearness = options.nearness;
  }

  take(): Place {
    let setNear: () => void = () => {};
    const near = new Promise<void>((resolve) => {
      setNear = resolve;
    });
    const waiting: Waiting = { setNear, setTurn: null, letsPass: false };
    this.#line.push(waiting);
    this.#advance();
    return {
      near,
      turn: () =>
        new Promise<void>((resolve) => {
          waiting.setTurn = resolve;
          waiting.letsPass = false;
          this.#advance();
        }),
      letPass: () => {
        waiting.letsPass = true;
        this.#advance();
      },
      stepBack: () => this.#release(waiting),
      leave: (sending) => {
        if (sending) this.#inFlight += 1;
        const at = this.#line.indexOf(waiting);
        if (at >= 0) this.#line.splice(at, 1);
        this.#release(waiting);
      },
      ended: () => {
        this.#inFlight -= 1;
        this.#advance();
      },
    };
  }

  #release(waiting: Waiting): void {
    if (this.#holder === waiting) this.#holder = null;
    this.#advance();
  }

  #advance(): void {
    if (this.#holder === null && this.#inFlight < this.#concurrency) {
      const next = this.#line.find((waiting) => waiting.setTurn !== null);
      if (next) {
        this.#holder = next;
        next.setTurn?.();
        next.setTurn = null;
      }
    }
    const others = this.#line.filter((waiting) => waiting !== this.#holder && !waiting.letsPass);
    for (const waiting of others.slice(0, this.#nearness)) waiting.setNear();
  }
}
