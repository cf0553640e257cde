import { Agent, type Dispatcher, errors } from 'undici';
import type { Target } from '../../config/schema.ts';
import type { Secret } from '../../config/secret.ts';
import { type ReadGate, SideError } from '../side.ts';
import { type JsonNode, JsonSyntaxError, parseJson } from '../value/lossless-json.ts';

/** A larger answer is refused: a page or batch that big would not fit beside the others. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

const NO_SERVER = 'check the target’s url, that the server runs, and that this machine may reach it';

/** The part of a target that reads need. */
export interface HttpTarget {
  readonly url: Secret;
  readonly headers: Target['headers'];
  readonly timeout: Target['timeout'];
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'HEAD';
  /** Encoded path with query. */
  readonly path: string;
  readonly body?: string;
  /** True where 404 and 204 say that there is no such record. */
  readonly mayBeAbsent?: boolean;
}

export interface Answer {
  /** Null when the record is absent. */
  readonly json: JsonNode | null;
}

/** Calls one target, a slot of its read gate before each call (rule 6.16). Every error is a `SideError`. */
export class HttpClient {
  readonly #base: URL;
  readonly #headers: Record<string, string>;
  readonly #agent: Agent;
  readonly #target: HttpTarget;
  readonly #gate: (signal: AbortSignal) => Promise<void>;
  readonly #where: string;
  readonly #targetName: string;

  constructor(options: { target: HttpTarget; targetName: string; readGate: ReadGate; where: string }) {
    const { target, targetName, readGate, where } = options;
    this.#where = where;
    this.#targetName = targetName;
    this.#target = target;
    this.#base = baseOf(target.url, where);
    this.#headers = Object.fromEntries(
      Object.entries(target.headers).map(([name, value]) => [name.toLowerCase(), value.reveal()]),
    );
    this.#gate = (signal) => readGate.take(targetName, signal);
    this.#agent = new Agent({
      connect: { timeout: target.timeout.connect },
      headersTimeout: target.timeout.answer,
      bodyTimeout: target.timeout.answer,
      maxResponseSize: MAX_ANSWER_BYTES,
    });
  }

  async json(call: Call, signal: AbortSignal): Promise<Answer> {
    return this.#call(call, signal, async (answer) => {
      const bytes = new Uint8Array(await answer.body.arrayBuffer());
      if (call.mayBeAbsent === true && (answer.statusCode === 404 || answer.statusCode === 204)) {
        return { json: null };
      }
      this.#assertSuccess(call, answer);
      return { json: this.#parse(call, bytes) };
    });
  }

  /** The `Date` header of any answer, whatever its status; null when the server sends none. */
  async date(signal: AbortSignal): Promise<string | null> {
    return this.#call({ method: 'HEAD', path: '' }, signal, async (answer) => {
      await answer.body.dump();
      const { date } = answer.headers;
      return typeof date === 'string' ? date : null;
    });
  }

  async close(): Promise<void> {
    await this.#agent.close();
  }

  async #call<T>(
    call: Call,
    signal: AbortSignal,
    read: (answer: Dispatcher.ResponseData) => Promise<T>,
  ): Promise<T> {
    await this.#gate(signal);
    const deadline = AbortSignal.timeout(this.#target.timeout.answer);
    try {
      const answer = await this.#agent.request({
        origin: this.#base.origin,
        // Given as text, since a URL object would resolve dots in it.
        path: `${this.#base.pathname.replace(/\/$/, '')}${call.path}` || '/',
        method: call.method,
        headers: {
          accept: 'application/json',
          ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
          ...this.#headers,
        },
        body: call.body ?? null,
        signal: AbortSignal.any([signal, deadline]),
      });
      return await read(answer);
    } catch (error) {
      signal.throwIfAborted();
      throw this.#explain(call, error, deadline);
    }
  }

  #explain(call: Call, error: unknown, deadline: AbortSignal): SideError {
    if (error instanceof SideError) return error;
    if (deadline.aborted) {
      return this.#error(
        'TRU_SIDE_UNREACHABLE',
        call,
        `no whole answer within ${this.#target.timeout.answer} ms`,
        true,
      );
    }
    if (error instanceof errors.ResponseExceededMaxSizeError) {
      return this.#error(
        'TRU_SIDE_BROKEN_ANSWER',
        call,
        'the answer is larger than 32 MB; ask for less at once',
        false,
      );
    }
    const words = error instanceof Error ? error.message || error.name : String(error);
    // Undici reports an answer that breaks off as a closed or terminated body.
    const broken = /terminated|other side closed|content-length|mismatch/i.test(words);
    if (broken) {
      const advice = 'the answer broke off; try again, and ask its owner when it goes on';
      return this.#error('TRU_SIDE_BROKEN_ANSWER', call, `${words} (${advice})`, true, error);
    }
    return this.#error('TRU_SIDE_UNREACHABLE', call, `${words} (${NO_SERVER})`, true, error);
  }

  #assertSuccess(call: Call, { statusCode }: Dispatcher.ResponseData): void {
    if (statusCode >= 200 && statusCode < 300) return;
    if (statusCode >= 300 && statusCode < 400) {
      throw this.#error(
        'TRU_SIDE_MISCONFIGURED',
        call,
        `answered ${statusCode}; redirects are not followed (write the address it leads to)`,
        false,
      );
    }
    const code =
      statusCode >= 500
        ? 'TRU_SIDE_UNREACHABLE'
        : statusCode === 404 || statusCode === 405
          ? 'TRU_SIDE_MISCONFIGURED'
          : 'TRU_SIDE_REFUSED';
    const transient = statusCode >= 500 || statusCode === 429 || statusCode === 408;
    throw this.#error(code, call, `answered ${statusCode} (${this.#advice(statusCode)})`, transient);
  }

  #advice(status: number): string {
    const target = `targets.${this.#targetName}`;
    if (status === 401 || status === 403 || status === 407)
      return `check the credentials in ${target}.headers or ${target}.url, and what they may read`;
    if (status === 404 || status === 405) return `check method and path of the call, and ${target}.url`;
    if (status === 429) return `lower ${target}.reads to what it allows in 60 seconds`;
    if (status >= 500) return 'its server failed; try again, and ask its owner when it goes on';
    return 'check path, query and body of the call';
  }

  #parse(call: Call, bytes: Uint8Array): JsonNode {
    try {
      return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    } catch (error) {
      if (!(error instanceof JsonSyntaxError) && !(error instanceof TypeError)) throw error;
      const words = error instanceof JsonSyntaxError ? error.message : 'it is not UTF-8';
      throw this.#error(
        'TRU_SIDE_BROKEN_ANSWER',
        call,
        `the answer is no JSON: ${words} (cut off on its way, or another page than the API)`,
        true,
        error,
      );
    }
  }

  #error(
    code: SideError['code'],
    call: Call,
    message: string,
    transient: boolean,
    cause?: unknown,
  ): SideError {
    const options = cause === undefined ? { transient } : { transient, cause };
    // The query may hold cursors and credentials of the config, so only the path is shown.
    const path = call.path.split('?')[0] || '/';
    return new SideError(code, this.#where, `${call.method} ${path}: ${message}`, options);
  }
}

function baseOf(url: Secret, where: string): URL {
  try {
    const base = new URL(url.reveal());
    if (base.protocol === 'http:' || base.protocol === 'https:') return base;
  } catch {
    // Not shown: the text may hold a secret.
  }
  throw new SideError('TRU_SIDE_MISCONFIGURED', where, 'the target’s url is no http:// or https:// address', {
    transient: false,
  });
}
