import type { Answers, Matcher } from '../../config/schema.ts';
import { parsePointer, pointTo } from '../../reconcile/json-pointer.ts';
import { type JsonNode, parseJson } from '../../reconcile/value/lossless-json.ts';
import { errorChain, membersOf, messageOf, property } from './error-chain.ts';
import {
  afterSend,
  classOfCode,
  classOfMessage,
  isTimeoutCode,
  type OutcomeClass,
  timeoutWord,
} from './error-codes.ts';
import { classOfStatus } from './status.ts';

/** What one attempt amounts to. `code` is the stable word for counting; see `Outcome` for the meaning of each class. */
export interface Classified {
  readonly class: OutcomeClass;
  readonly code: string;
  /** True when nothing matched and `retryable` is a guess: bounded by the policy, and said aloud. */
  readonly unclassified: boolean;
}

/** What is known about the send that ended in an error. */
export interface SendFacts {
  /** True once a byte of the request may have left. Where that cannot be told, say true. */
  readonly sent: boolean;
  /** True when the target dedupes by idempotency key; only a status 500 cares. Left out: false. */
  readonly dedupes?: boolean;
}

/**
 * Sorts an error into an outcome class. The error's own word comes first: `retryable` (true or false) or
 * `outcome: 'unknown'`, anywhere in the cause chain, the outermost first. Then codes and names, outermost first;
 * then a numeric HTTP status, as SDKs carry it. What nothing knows is `retryable` and `unclassified`. Never throws.
 */
export function classifyError(error: unknown, facts: SendFacts): Classified {
  const chain = errorChain(error);
  for (const judge of [byProperty, byKnowledge]) {
    for (const each of chain) {
      const found = judge(each, facts) ?? mostCareful(membersOf(each).map((member) => judge(member, facts)));
      if (found !== null) return found;
    }
  }
  return { class: 'retryable', code: wordOf(error), unclassified: true };
}

function byProperty(error: unknown): Classified | null {
  const retryable = property(error, 'retryable');
  if (property(error, 'outcome') === 'unknown') return known('unknown', wordOf(error));
  if (retryable === true) return known('retryable', wordOf(error));
  if (retryable === false) return known('fatal', wordOf(error));
  return null;
}

function byKnowledge(error: unknown, facts: SendFacts): Classified | null {
  return byWords(error, facts) ?? byStatus(error, facts);
}

function byWords(error: unknown, facts: SendFacts): Classified | null {
  // A connect that failed never sent anything, whatever the code.
  const sent = facts.sent && property(error, 'syscall') !== 'connect';
  for (const name of ['code', 'errno', 'sqlState'] as const) {
    const code = property(error, name);
    // An HTTP status in `code` belongs to the status table; MySQL's numbers begin at 1000.
    if (typeof code !== 'string' && !(typeof code === 'number' && code >= 1000)) continue;
    const found = classOfCode(String(code), sent);
    if (found !== null) return known(found, isTimeoutCode(String(code)) ? timeoutWord(sent) : String(code));
  }
  const message = classOfMessage(messageOf(error), sent);
  if (message !== null) return known(message.class, message.code);
  const name = property(error, 'name');
  if (name === 'AbortError' || name === 'TimeoutError') return known(afterSend(sent), timeoutWord(sent));
  return null;
}

/** Where SDKs put the HTTP status: on the error, on its response (axios, got), or in AWS metadata. */
function byStatus(error: unknown, facts: SendFacts): Classified | null {
  const places = [error, property(error, 'response'), property(error, '$metadata')];
  for (const place of places) {
    for (const name of ['status', 'statusCode', 'httpStatusCode', 'code'] as const) {
      const status = property(place, name);
      if (typeof status !== 'number' || !Number.isInteger(status) || status < 300 || status > 599) continue;
      return known(classOfStatus(status, facts.dedupes ?? false), `http-${status}`);
    }
  }
  return null;
}

/** From most to least careful: of several failures at once the most careful one speaks for all. */
const CAREFUL: readonly OutcomeClass[] = ['unknown', 'conflict', 'fatal', 'retryable', 'target-down'];

function mostCareful(found: readonly (Classified | null)[]): Classified | null {
  for (const outcome of CAREFUL) {
    const speaker = found.find((each) => each?.class === outcome);
    if (speaker) return speaker;
  }
  return null;
}

/** The word under which an error is counted: its code, else its name. */
function wordOf(error: unknown): string {
  for (const name of ['code', 'name'] as const) {
    const word = property(error, name);
    if (typeof word === 'string' && /^[\w.:-]{1,64}$/.test(word)) return word;
  }
  return 'unclassified-error';
}

/** A whole HTTP answer. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

/** The order in which the config's matchers are asked: what must not be repeated is recognised first. */
const ORDER = [
  ['fatal', 'fatal'],
  ['unknown', 'unknown'],
  ['pending', 'pending'],
  ['retryable', 'retryable'],
  ['success', 'accepted'],
] as const satisfies readonly (readonly [keyof Answers, OutcomeClass])[];

/**
 * Sorts an answer into an outcome class: the config's matchers first, then the status table. A body that a matcher
 * must read and that is no JSON makes the answer unknown (`unreadable-answer`), except for 429 and 503: there the
 * status alone says that nothing was done, and proxies answer it in HTML. When `success` is given and a 2xx matches
 * nothing at all, the answer is unknown (`unrecognised-answer`). Never throws: a matcher that is broken (no regular
 * expression, no pointer) makes the answer unknown too (`bad-matcher`), since the send has happened.
 */
export function classifyAnswer(answer: Answer, answers: Answers, target: { dedupes: boolean }): Classified {
  const document = readBody(answer);
  const declined = answer.status === 429 || answer.status === 503;
  for (const [list, outcome] of ORDER) {
    for (const matcher of answers[list] ?? []) {
      const found = match(matcher, answer, document);
      if (found.match === 'yes') return known(outcome, found.code);
      if (found.match === 'cannot-tell' && !declined) return known('unknown', found.code);
    }
  }
  const outcome = classOfStatus(answer.status, target.dedupes);
  if (outcome === 'accepted' && answers.success !== undefined) return known('unknown', 'unrecognised-answer');
  return known(outcome, `http-${answer.status}`);
}

type Body = JsonNode | 'empty' | 'unreadable';

/** 204 and 205 have no body by definition: nothing stands anywhere in it, which is not the same as unreadable. */
function readBody(answer: Answer): Body {
  if (answer.status === 204 || answer.status === 205) return 'empty';
  try {
    return parseJson(answer.body);
  } catch {
    return 'unreadable';
  }
}

type Match =
  | { readonly match: 'yes'; readonly code: string }
  | { readonly match: 'no' }
  | { readonly match: 'cannot-tell'; readonly code: string };

const NO: Match = { match: 'no' };

function match(matcher: Matcher, answer: Answer, body: Body): Match {
  if (matcher.status !== undefined && !matcher.status.includes(answer.status)) return NO;
  try {
    if (matcher.message !== undefined && !new RegExp(matcher.message).test(answer.body)) return NO;
    if (matcher.pointer === undefined) return { match: 'yes', code: `http-${answer.status}` };
    return matchAt(matcher.pointer, matcher.in, body);
  } catch {
    // The pattern or the pointer does not compile.
    return { match: 'cannot-tell', code: 'bad-matcher' };
  }
}

function matchAt(pointer: string, values: Matcher['in'], body: Body): Match {
  if (body === 'unreadable') return { match: 'cannot-tell', code: 'unreadable-answer' };
  const node = body === 'empty' ? undefined : pointTo(body, parsePointer(pointer));
  if (node === undefined) return NO;
  if (values === undefined) return { match: 'yes', code: `business${pointer}` };
  const found = values.find((value) => isValue(node, value));
  return found === undefined ? NO : { match: 'yes', code: `business-${String(found)}` };
}

/** Strict: the text "0" is not the number 0. Numbers compare as numbers, since they are codes here, not data. */
function isValue(node: JsonNode, value: string | number | boolean | null): boolean {
  if (node.kind === 'null') return value === null;
  if (node.kind === 'number') return Number(node.text) === value;
  return (node.kind === 'string' || node.kind === 'boolean') && node.value === value;
}

/** A class that was recognised, not guessed. */
function known(outcome: OutcomeClass, code: string): Classified {
  return { class: outcome, code, unclassified: false };
}
