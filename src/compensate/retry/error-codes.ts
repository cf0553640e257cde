import type { Outcome } from '../action.ts';

export type OutcomeClass = Outcome['class'];

/**
 * What is known about error codes, as data. Three questions matter: did the request surely not leave (then the
 * target is down), did it surely fail (then the code says whether repeating helps), or may it have worked?
 */

/** The request surely never left: no connection, or no free one in the pool. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_PRX_TLS',
  // The TLS handshake ended before any request.
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_TLS_HANDSHAKE_TIMEOUT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  // MySQL: too many connections.
  'ER_CON_COUNT_ERROR',
]);

/** The connection broke: target down when nothing was written yet, otherwise nobody knows. */
const BROKEN = new Set([
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'EPROTO',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_STREAM_DESTROYED',
  'ERR_HTTP2_STREAM_ERROR',
  'ERR_HTTP2_SESSION_ERROR',
  'PROTOCOL_CONNECTION_LOST',
  'UND_ERR_SOCKET',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
  'UND_ERR_INFO',
]);

/** Time ran out: the same split as a broken connection. */
const TIMED_OUT = new Set([
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
  'PROTOCOL_SEQUENCE_TIMEOUT',
  'ABORT_ERR',
  'UND_ERR_ABORT',
  'UND_ERR_ABORTED',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/** The target answered, and the answer could not be read. */
const UNREADABLE = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_RES_EXCEEDED_MAX_SIZE',
]);

/** The request itself cannot be made; it is the same tomorrow. */
const IMPOSSIBLE = new Set([
  'ERR_INVALID_URL',
  'ERR_INVALID_CHAR',
  'ERR_INVALID_HTTP_TOKEN',
  'ERR_UNESCAPED_CHARACTERS',
  'UND_ERR_INVALID_ARG',
  'UND_ERR_NOT_SUPPORTED',
  'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
]);

/** MySQL names its errors by word and by number. */
const MYSQL: Readonly<Record<string, OutcomeClass>> = {
  ER_LOCK_DEADLOCK: 'retryable',
  '1213': 'retryable',
  ER_LOCK_WAIT_TIMEOUT: 'retryable',
  '1205': 'retryable',
  ER_DUP_ENTRY: 'conflict',
  '1062': 'conflict',
};

/** SQLSTATEs with a meaning of their own; the first two characters decide the rest. */
const SQLSTATE: Readonly<Record<string, OutcomeClass>> = {
  '40001': 'retryable', // serialization failure
  '40P01': 'retryable', // deadlock
  '55P03': 'retryable', // lock not available
  '57014': 'retryable', // cancelled, by statement_timeout too: rolled back
  '40003': 'unknown', // statement completion unknown
  '23505': 'conflict', // the row is there already: look first, like a 409
  '25006': 'target-down', // read-only: a standby answers during a failover
};

const SQLSTATE_CLASS: Readonly<Record<string, OutcomeClass>> = {
  '22': 'fatal', // data exception
  '23': 'fatal', // constraint
  '28': 'fatal', // not authorised
  '42': 'fatal', // syntax, missing table, missing right
  '53': 'target-down', // out of connections, memory or disk
};

/** The class of a string or numeric error code, or null when the code says nothing. */
export function classOfCode(code: string, sent: boolean): OutcomeClass | null {
  if (NEVER_SENT.has(code)) return 'target-down';
  if (BROKEN.has(code) || TIMED_OUT.has(code)) return afterSend(sent);
  if (UNREADABLE.has(code) || code.startsWith('HPE_')) return 'unknown';
  if (IMPOSSIBLE.has(code)) return 'fatal';
  return MYSQL[code] ?? classOfSqlState(code, sent);
}

export function isTimeoutCode(code: string): boolean {
  return TIMED_OUT.has(code);
}

/** What a broken or silent connection means: unknown once the request may have left, else the target is down. */
export function afterSend(sent: boolean): OutcomeClass {
  return sent ? 'unknown' : 'target-down';
}

function classOfSqlState(code: string, sent: boolean): OutcomeClass | null {
  if (!/^\d[0-9A-Z]{4}$/.test(code)) return null;
  if (code.startsWith('08') || code.startsWith('57P0')) return afterSend(sent);
  return SQLSTATE[code] ?? SQLSTATE_CLASS[code.slice(0, 2)] ?? null;
}

/**
 * Errors that carry no code and are known by their words: waits for a pooled connection (knex, tarn, pg-pool) and
 * what pg says about its own connection.
 */
const BY_MESSAGE: readonly (readonly [RegExp, 'never-sent' | 'broken' | 'timed-out', string])[] = [
  [/^Knex: Timeout acquiring a connection/, 'never-sent', 'pool-timeout'],
  [/^timeout exceeded when trying to connect$/, 'never-sent', 'pool-timeout'],
  [/^Connection terminated due to connection timeout$/, 'never-sent', 'connect-timeout'],
  [/^timeout expired$/, 'never-sent', 'connect-timeout'],
  [/^Connection terminated( unexpectedly)?$/, 'broken', 'connection-terminated'],
  [/^Query read timeout$/, 'timed-out', 'timeout'],
  [/^Defined query timeout of \d+ms exceeded/, 'timed-out', 'timeout'],
];

/** The class and word of an error that is known only by its message, or null. */
export function classOfMessage(message: string, sent: boolean): { class: OutcomeClass; code: string } | null {
  const known = BY_MESSAGE.find(([pattern]) => pattern.test(message));
  if (known === undefined) return null;
  const [, kind, word] = known;
  if (kind === 'never-sent') return { class: 'target-down', code: word };
  return { class: afterSend(sent), code: kind === 'timed-out' ? timeoutWord(sent) : word };
}

/** One word for every kind of timeout, so that they are counted together. */
export function timeoutWord(sent: boolean): string {
  return sent ? 'timeout-after-send' : 'timeout-before-send';
}
