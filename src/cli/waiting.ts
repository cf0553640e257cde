import { formatDuration } from '../config/duration.ts';
import type { TargetLoad } from '../jobs/send-loads.ts';

export interface GaveUp {
  readonly waitingFor: readonly string[];
  /** Only a person can let it go on. */
  readonly needsPerson: boolean;
}

export interface Seen {
  /** What is to be sent, by target. */
  readonly loads: readonly TargetLoad[];
  /** A run is still finding out what differs; that ends by itself. */
  readonly reading: boolean;
  /** Another text than before when something moved. */
  readonly movement: string;
}

/** Says what a run waits for, once per reason, and gives up when there is something to send and nothing moves. */
export class Waiting {
  readonly #mostMs: number;
  readonly #now: () => number;
  #movement = '';
  #since: number;
  #reasons = '';

  constructor(mostMs: number, now: () => number = () => performance.now()) {
    this.#mostMs = mostMs;
    this.#now = now;
    this.#since = now();
  }

  look({ loads, reading, movement }: Seen): { say: string | null; gaveUp: GaveUp | null } {
    const unsent = loads.filter(({ sends }) => sends > 0);
    // What was sent is settled by looks, within the time that its repair gives them.
    if (reading || unsent.length === 0 || movement !== this.#movement) this.#since = this.#now();
    this.#movement = movement;
    const stopped = unsent.filter((load) => load.stopped !== null);
    const waitingFor = stopped.map(
      ({ target, sends, stopped: why }) => `${sends} sends to ${target}: ${why}`,
    );
    return { say: this.#news(stopped, waitingFor), gaveUp: this.#gaveUp(stopped, waitingFor) };
  }

  #news(stopped: readonly TargetLoad[], waitingFor: readonly string[]): string | null {
    const reasons = stopped.map(({ target, stopped: why }) => `${target} ${why}`).join('; ');
    if (reasons === this.#reasons) return null;
    this.#reasons = reasons;
    if (reasons === '') return null;
    return `waiting (at most ${formatDuration(this.#mostMs)} without a move): ${waitingFor.join('; ')}`;
  }

  #gaveUp(stopped: readonly TargetLoad[], waitingFor: readonly string[]): GaveUp | null {
    if (this.#now() - this.#since < this.#mostMs) return null;
    return {
      waitingFor: waitingFor.length > 0 ? waitingFor : ['nothing moves, and no target says why'],
      needsPerson: stopped.some(({ needsPerson }) => needsPerson),
    };
  }
}
