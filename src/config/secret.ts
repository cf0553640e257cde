import { inspect } from 'node:util';

const MASK = '[secret]';

/** A value that never shows itself: `String()`, `JSON.stringify` and `inspect` give `[secret]`; `reveal()` gives the text. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [inspect.custom](): string {
    return MASK;
  }
}

/** A URL fit to print: without user, password, query and fragment. Text that is no URL is masked whole. */
export function displayUrl(secret: Secret): string {
  try {
    const url = new URL(secret.reveal());
    return `${url.protocol}//${url.host}${url.pathname}`;
  } catch {
    return MASK;
  }
}
