import { request } from 'undici';
import { parseRetryAfter } from '../../compensate/retry/retry-after.ts';
import { createRedactor, secretsIn } from '../../config/redact.ts';
import type { Secret } from '../../config/secret.ts';
import type { Delivered } from '../channel.ts';
import { cutText } from '../cut-text.ts';

/** An answer as far as it is read. */
export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly retryAfterMs: number | null;
}

export interface Post {
  readonly url: Secret;
  /** Added to the address, for a signature that is made per send. */
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  /** Never shown in a reason or answer, besides the address. */
  readonly secrets: readonly Secret[];
  /** Hides the other secrets of the configuration: an answer may repeat anything, and reasons are stored. */
  readonly redact: (text: string) => string;
}

/** A webhook's answer is a few words; the rest of a long one says nothing. */
const ANSWER_BYTES = 64 * 1024;
const SHOWN_BYTES = 300;
/** An alert that is an hour late is no alert. */
const LONGEST_WAIT_MS = 3_600_000;

/**
 * Posts JSON and lets `judge` say what the answer means: each provider has its own idea of success. Redirects are not
 * followed, since they would carry the message and its signature elsewhere. Never throws; what cannot be sent, and
 * whatever the answer echoes, is told without the address and the secrets.
 */
export async function post(
  message: Post,
  signal: AbortSignal,
  judge: (answer: Answer) => Delivered,
): Promise<Delivered> {
  const hide = redactorOf(message);
  try {
    const verdict = judge(await exchange(message, signal));
    return verdict.sent
      ? { ...verdict, answer: cutText(hide(verdict.answer), SHOWN_BYTES) }
      : { ...verdict, reason: cutText(hide(verdict.reason), SHOWN_BYTES) };
  } catch (error) {
    return {
      sent: false,
      permanent: false,
      retryAfterMs: null,
      reason: cutText(hide(failureOf(error, signal)), SHOWN_BYTES),
    };
  }
}

async function exchange({ url, query = {}, headers = {}, body }: Post, signal: AbortSignal): Promise<Answer> {
  const address = new URL(url.reveal());
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
  const answer = await request(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json; charset=utf-8', 'user-agent': 'trueup', ...headers },
    body,
    signal,
    // Messages are rare: a connection kept for the next one would be stale by then.
    reset: true,
  });
  return {
    status: answer.statusCode,
    text: await readSome(answer.body),
    retryAfterMs: parseRetryAfter(answer.headers['retry-after'], Date.now(), LONGEST_WAIT_MS),
  };
}

async function readSome(body: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of body) {
    parts.push(part);
    bytes += part.length;
    if (bytes >= ANSWER_BYTES) break;
  }
  return Buffer.concat(parts).subarray(0, ANSWER_BYTES).toString('utf8');
}

function redactorOf({ url, query = {}, secrets, redact }: Post): (text: string) => string {
  const address = url.reveal();
  const parts = URL.canParse(address) ? new URL(address) : null;
  const path =
    parts === null || parts.pathname.length < 2 ? [] : [`${parts.pathname}${parts.search}`, parts.pathname];
  const own = createRedactor([
    address,
    ...path,
    ...secretsIn(address),
    ...Object.values(query),
    ...secrets.map((secret) => secret.reveal()),
  ]);
  return (text) => redact(own(text));
}

/** Only the code: an error's text repeats the address. */
function failureOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return 'no answer in time';
  const code = codeOf(error);
  if (code === 'ERR_INVALID_URL') return 'the address is no URL';
  return `the connection failed (${code ?? (error instanceof Error ? error.name : typeof error)})`;
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('code' in error && typeof error.code === 'string') return error.code;
  return codeOf(error.cause);
}

/** What an answer says; undefined when it is no JSON, which is one way of not being the answer one waits for. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
