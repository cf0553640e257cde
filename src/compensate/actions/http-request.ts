import type { Target } from '../../config/schema.ts';
import type { Payload, SendContext } from '../action.ts';
import { FatalError } from '../errors.ts';

export type HttpPayload = Extract<Payload, { type: 'http' }>;

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  /** As they go over the wire: UTF-8 bytes, each written as one Latin-1 character. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** The request as an attempt keeps it: without secrets. */
interface RecordedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface BuiltRequest {
  readonly wire: HttpRequest;
  readonly recorded: RecordedRequest;
  /** Hides the request's secrets in a text that may repeat them. */
  readonly mask: (text: string) => string;
}

const MASK = '[secret]';
const SECRET_HEADER = /^(authorization|proxy-authorization|cookie|.*(token|secret|password|api-?key).*)$/i;
const SECRET_PARAMETER = /token|secret|password|signature|^sign$|api[-_]?key/i;

interface Header {
  readonly name: string;
  readonly value: string;
  readonly secret: boolean;
}

/**
 * The request of one attempt. Later wins: the target's headers, the payload's, then the idempotency key and the trace,
 * which no configuration can replace. Throws `FatalError` when the payload cannot be written as HTTP.
 */
export function buildRequest(
  target: Target,
  base: URL,
  payload: HttpPayload,
  context: SendContext,
): BuiltRequest {
  const headers = collectHeaders(target, base, payload, context);
  const path = joinPath(base, payload.path);
  const query = hideParameters(path, base);
  const secrets = [
    ...headers.filter((header) => header.secret).map((header) => header.value),
    ...query.secrets,
    ...query.secrets.map(percentDecoded),
    percentDecoded(base.password),
  ];
  const { method, body } = payload;
  return {
    wire: {
      method,
      path,
      headers: Object.fromEntries(headers.map((each) => [each.name, wireBytes(each)])),
      body,
    },
    recorded: {
      method,
      url: `${base.protocol}//${base.host}${query.shown}`,
      headers: Object.fromEntries(headers.map((each) => [each.name, each.secret ? MASK : each.value])),
      body,
    },
    mask: masker(secrets),
  };
}

function collectHeaders(
  target: Target,
  base: URL,
  payload: HttpPayload,
  context: SendContext,
): readonly Header[] {
  const headers = new Map<string, Header>();
  const put = (name: string, value: string, secret: boolean) =>
    headers.set(name.toLowerCase(), { name, value, secret });
  put('accept', 'application/json, */*;q=0.5', false);
  if (payload.body !== null) put('content-type', 'application/json', false);
  if (base.username !== '' || base.password !== '') put('authorization', basicAuthorization(base), true);
  for (const [name, value] of Object.entries(target.headers)) put(name, value.reveal(), true);
  for (const [name, value] of Object.entries(payload.headers)) put(name, value, SECRET_HEADER.test(name));
  put(target.idempotency.header, context.idempotencyKey, false);
  put('traceparent', context.traceparent, false);
  return [...headers.values()];
}

function basicAuthorization(base: URL): string {
  const pair = `${percentDecoded(base.username)}:${percentDecoded(base.password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A lone % was never an encoding: the text is meant as it stands.
    return text;
  }
}

/** HTTP headers are bytes. A key with letters beyond ASCII travels as its UTF-8 bytes, the same over every hop. */
function wireBytes(header: Header): string {
  for (const character of header.value) {
    const code = character.charCodeAt(0);
    if ((code < 0x20 && code !== 0x09) || code === 0x7f)
      throw new FatalError(`the header ${header.name} holds a control character and cannot be sent`);
  }
  return Buffer.from(header.value, 'utf8').toString('latin1');
}

/** The target's base path and query, then the payload's. Never resolved as a URL: a record must not choose the host. */
function joinPath(base: URL, path: string): string {
  if (!path.startsWith('/')) throw new FatalError(`the path "${path}" does not start with /`);
  const [way = '', ...rest] = path.split('?');
  if (way.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment)))
    throw new FatalError(`the path "${path}" has a "." or ".." segment, which would call another address`);
  const query = [base.search.slice(1), rest.join('?')].filter((part) => part !== '').join('&');
  const whole = `${base.pathname.replace(/\/+$/, '')}${way}${query === '' ? '' : `?${query}`}`;
  return whole.replaceAll('#', '%23').replace(/[^\u0021-\u007e]+/gu, encodeURIComponent);
}

interface Query {
  /** Path and query without the values that are secret. */
  readonly shown: string;
  readonly secrets: readonly string[];
}

function hideParameters(path: string, base: URL): Query {
  const [way = '', ...rest] = path.split('?');
  const secrets: string[] = [];
  const shown = rest
    .flatMap((query) => query.split('&'))
    .map((pair) => {
      const [name = '', ...value] = pair.split('=');
      if (!base.searchParams.has(name) && !SECRET_PARAMETER.test(name)) return pair;
      secrets.push(value.join('='));
      return `${name}=${MASK}`;
    });
  return { shown: shown.length === 0 ? way : `${way}?${shown.join('&')}`, secrets };
}

/** Hides the secrets of a request wherever an answer or an error repeats them. */
function masker(secrets: readonly string[]): (text: string) => string {
  // "Bearer abc": the second word alone is the secret. Short words would mask ordinary text.
  const words = secrets.flatMap((value) => [value, ...value.split(/\s+/)]).filter((word) => word.length >= 8);
  const longestFirst = [...new Set(words)].sort((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((shown, word) => shown.replaceAll(word, MASK), text);
}
