/**
 * Turns at one gate within this process, first come, first served. One asker at a time asks the store for a slot:
 * many at once would wait for the gate's row lock, and with it let the validity of their own slots pass (the time
 * between asking and the answer counts against it, rule 6.14). A place is `near` when its turn comes soon, so that
 * the look before the send is taken late enough to be fresh and early enough not to hold up the turn.
 */
export interface Place {
  /** Resolves when few others are ahead. */
  readonly near: Promise<void>;
  /** Resolves when it is this place's turn to ask, and fewer than `concurrency` calls are in flight. */
  readonly turn: Promise<void>;
  /** The turn is over: the next may ask. With `sending`, the call counts as in flight until `ended`. */
  leave(sending: boolean): void;
  /** The call has ended. */
  ended(): void;
}

interface Waiting {
  readonly setNear: () => void;
  readonly setTurn: () => void;
}

export class Turns {
  readonly #concurrency: number;
  readonly #nearness: number;
  #queue: Waiting[] = [];
  #taken = false;
  #inFlight = 0;

  /** `nearness`: how many places ahead of the turn a place is near. */
  constructor(options: { concurrency: number; nearness: number }) {
    this.#concurrency = options.concurrency;
    this.#nearness = options.nearness;
  }

  take(): Place {
    let setNear: () => void = () => {};
    let setTurn: () => void = () => {};
    const near = new Promise<void>((resolve) => {
      setNear = resolve;
    });
    const turn = new Promise<void>((resolve) => {
      setTurn = resolve;
    });
    const waiting = { setNear, setTurn };
    this.#queue.push(waiting);
    this.#advance();
    return {
      near,
      turn,
      leave: (sending) => {
        if (sending) this.#inFlight += 1;
        const at = this.#queue.indexOf(waiting);
        // Not in the queue: it is the one whose turn it was.
        if (at < 0) this.#taken = false;
        else this.#queue.splice(at, 1);
        this.#advance();
      },
      ended: () => {
        this.#inFlight -= 1;
        this.#advance();
      },
    };
  }

  #advance(): void {
    if (!this.#taken && this.#inFlight < this.#concurrency) {
      const next = this.#queue.shift();
      if (next) {
        this.#taken = true;
        next.setNear();
        next.setTurn();
      }
    }
    for (const waiting of this.#queue.slice(0, this.#nearness)) waiting.setNear();
  }
}
