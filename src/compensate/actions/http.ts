import { DateTime } from 'luxon';
import type { Answers, Target } from '../../config/schema.ts';
import type { Outcome, Payload, SendContext, Sender } from '../action.ts';
import { FatalError } from '../errors.ts';
import { type Classified, classifyAnswer, classifyError } from '../retry/classify.ts';
import { type ErrorTree, errorRecord } from '../retry/error-chain.ts';
import { parseRetryAfter } from '../retry/retry-after.ts';
import { DeadlinePassed } from './deadline.ts';
import { HttpConnections } from './http-connections.ts';
import { type Exchange, exchange, type HttpAnswer } from './http-exchange.ts';
import { type BuiltRequest, buildRequest, type HttpRequest } from './http-request.ts';
import { known, outcome } from './outcome.ts';
import { targetUrl } from './target-url.ts';

/** Headers of an answer that explain it and hold no secret. */
const KEPT_HEADERS = [
  'content-type',
  'content-length',
  'content-encoding',
  'date',
  'retry-after',
  'server',
  'allow',
  'idempotent-replayed',
  'request-id',
  'x-request-id',
  'x-correlation-id',
];

/**
 * Sends to one target over HTTP. The answers that mean success, pending and so on belong to the repair, so there is one
 * sender per (target, repair). Redirects are not followed: each would be a call of its own (rule 6.16).
 * Throws `TrueupError` (`TRU_CONFIG_TARGET`) when the target has no http(s) address.
 */
export function createHttpSender(options: {
  readonly targetName: string;
  readonly target: Target;
  readonly answers: Answers;
}): Sender {
  const { target, answers } = options;
  const base = targetUrl(options.targetName, target, ['http:', 'https:'], 'http');
  const connections = new HttpConnections(new URL(base.origin), {
    connectMs: target.timeout.connect,
    most: target.concurrency,
  });

  async function send(payload: Payload, context: SendContext): Promise<Outcome> {
    const startedAt = performance.now();
    let request: BuiltRequest | undefined;
    const end = (
      classified: Classified,
      answer: HttpAnswer | null,
      error: unknown,
      retryAfterMs: number | null,
    ) => {
      const mask = request?.mask ?? unmasked;
      return outcome(classified, {
        request: request?.recorded ?? null,
        answer: answer === null ? null : recordAnswer(answer, mask),
        error: error === null ? null : maskErrors(errorRecord(error), mask),
        retryAfterMs,
        startedAt,
      });
    };
    try {
      if (payload.type !== 'http')
        throw new FatalError(`an http target cannot send a "${payload.type}" payload`);
      request = buildRequest(target, base, payload, context);
      const result = await call(connections, request.wire, context.signal);
      if (result.kind === 'failed')
        return end(classifyFailure(result.error, result.sent), result.partial, result.error, null);
      const { answer } = result;
      const { 'retry-after': retryAfter } = answer.headers;
      return end(
        classifyAnswer(answer, answers, { dedupes: target.idempotency.dedupes }),
        answer,
        null,
        parseRetryAfter(retryAfter, clockOf(answer), target.giveUpAfter),
      );
    } catch (error) {
      return end(classifyFailure(error, false), null, error, null);
    }
  }

  return {
    warm: () => connections.warm(),
    ready: () => connections.ready(),
    send,
    close: async () => connections.close(),
  };
}

/** Before there is a request, no secret is in anything. */
function unmasked(text: string): string {
  return text;
}

async function call(
  connections: HttpConnections,
  request: HttpRequest,
  signal: AbortSignal,
): Promise<Exchange> {
  const connection = await connections.take(signal);
  const result = await exchange(connection.client, request, signal);
  if (result.kind === 'answered' && result.reusable) connections.give(connection);
  else connection.drop();
  return result;
}

function classifyFailure(error: unknown, sent: boolean): Classified {
  if (error instanceof DeadlinePassed)
    return sent ? known('unknown', 'timeout-after-send') : known('target-down', 'timeout-before-send');
  const classified = classifyError(error, { sent });
  // Whatever went wrong after the first byte: the target may have acted.
  return sent && classified.unclassified ? { ...classified, class: 'unknown' } : classified;
}

function recordAnswer(answer: HttpAnswer, mask: (text: string) => string) {
  const headers = KEPT_HEADERS.flatMap((name) => {
    const value = answer.headers[name];
    return value === undefined ? [] : [[name, mask(value)]];
  });
  const { location: address } = answer.headers;
  const location = address?.split('?')[0];
  return {
    status: answer.status,
    headers: {
      ...Object.fromEntries(headers),
      ...(location === undefined ? {} : { location: mask(location) }),
    },
    body: mask(answer.body),
    truncated: answer.truncated,
  };
}

function maskErrors(tree: ErrorTree, mask: (text: string) => string): ErrorTree {
  return {
    ...tree,
    message: mask(tree.message),
    stack: tree.stack === null ? null : mask(tree.stack),
    cause: tree.cause === null ? null : maskErrors(tree.cause, mask),
    errors: tree.errors.map((each) => maskErrors(each, mask)),
  };
}

/** The target's own clock where the answer tells it: a date in `Retry-After` is meant by that clock. */
function clockOf(answer: HttpAnswer): number {
  const { date = '' } = answer.headers;
  const told = DateTime.fromHTTP(date);
  return told.isValid ? told.toMillis() : Date.now();
}
