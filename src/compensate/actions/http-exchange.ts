import type { Client, Dispatcher } from 'undici';
import { DeadlinePassed } from './deadline.ts';
import type { HttpRequest } from './http-request.ts';
import { KEPT_BYTES } from './outcome.ts';

/** Beyond this an answer is cut off: reading on would only cost time, and its status is known. */
const READ_BYTES = 1024 * 1024;

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** True when the body was longer than what is kept. */
  readonly truncated: boolean;
}

export type Exchange =
  /** `reusable`: the answer was read to its end, so the connection can carry another call. */
  | { readonly kind: 'answered'; readonly answer: HttpAnswer; readonly reusable: boolean }
  | {
      readonly kind: 'failed';
      readonly error: unknown;
      /** True from the moment bytes may have left. */
      readonly sent: boolean;
      /** What had arrived of an answer that did not end. */
      readonly partial: HttpAnswer | null;
    };

/** One request and its answer on a connection. Never throws; redirects are answers. */
export function exchange(client: Client, request: HttpRequest, signal: AbortSignal): Promise<Exchange> {
  return new Promise((resolve) => {
    const received = new Received();
    let control: Dispatcher.DispatchController | undefined;
    const settle = (result: Exchange) => {
      signal.removeEventListener('abort', expire);
      resolve(result);
    };
    const fail = (error: unknown) =>
      settle({ kind: 'failed', error, sent: control !== undefined, partial: received.answer() });
    const expire = () => {
      const error = new DeadlinePassed(signal);
      if (control === undefined) fail(error);
      else control.abort(error);
    };
    const handler: Dispatcher.DispatchHandler = {
      // Called right before the first byte is written; a second time when undici would write the request again.
      onRequestStart: (controller) => {
        if (control !== undefined)
          controller.abort(new Error('the connection was lost; nothing is sent twice'));
        else if (signal.aborted) controller.abort(new DeadlinePassed(signal));
        else control = controller;
      },
      onResponseStart: (_controller, status, headers) => received.start(status, headers),
      onResponseData: (controller, chunk) => {
        received.add(chunk);
        if (received.bytes <= READ_BYTES) return;
        const answer = received.answer();
        if (answer !== null) settle({ kind: 'answered', answer, reusable: false });
        controller.abort(new Error('the answer is too long to read on'));
      },
      onResponseEnd: () => {
        const answer = received.answer();
        if (answer === null) fail(new Error('the answer ended before it had a status'));
        else settle({ kind: 'answered', answer, reusable: true });
      },
      onResponseError: (_controller, error) => fail(error),
    };
    if (signal.aborted) return expire();
    signal.addEventListener('abort', expire, { once: true });
    try {
      client.dispatch({ ...request, idempotent: false }, handler);
    } catch (error) {
      fail(error);
    }
  });
}

/** Gathers an answer, keeping no more of it than an attempt stores. */
class Received {
  bytes = 0;
  #status = 0;
  #headers: Record<string, string> = {};
  #kept: Buffer[] = [];
  #keptBytes = 0;

  /** Called again after an informational answer such as 103. */
  start(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    this.#status = status;
    this.#headers = {};
    for (const [name, value] of Object.entries(headers))
      if (value !== undefined) this.#headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }

  add(chunk: Buffer): void {
    this.bytes += chunk.length;
    const part = chunk.subarray(0, KEPT_BYTES - this.#keptBytes);
    if (part.length === 0) return;
    this.#kept.push(Buffer.from(part));
    this.#keptBytes += part.length;
  }

  answer(): HttpAnswer | null {
    if (this.#status < 200) return null;
    const body = Buffer.concat(this.#kept).toString('utf8');
    return { status: this.#status, headers: this.#headers, body, truncated: this.bytes > this.#keptBytes };
  }
}
