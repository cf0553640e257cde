/** SQLSTATEs after which the same statement may work later: the server is away, full, starting, or was busy. */
const TRANSIENT_STATES = /^(08...|53...|40001|40P01|55P03|57014|57P0[1-5]|25006|25P0[34])$/;

const TRANSIENT_ERRNOS = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'TRU_STORE_BUSY',
  'TRU_STORE_SILENT',
]);

/** The driver gives these no code. */
const TRANSIENT_MESSAGES =
  /^(Connection terminated|timeout expired|Connection ended unexpectedly|Client has encountered a connection error|Client was closed)/;

/**
 * True when doing the same again later may help: the connection was lost or refused, the server shuts down, starts
 * or is out of room, or a lock was not to be had. Says nothing about whether a commit happened. Reads the whole
 * cause chain.
 */
export function isTransientDatabaseError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  if (code !== undefined && (TRANSIENT_ERRNOS.has(code) || TRANSIENT_STATES.test(code))) return true;
  if (TRANSIENT_MESSAGES.test(error.message)) return true;
  return isTransientDatabaseError(error.cause);
}

/** The five-letter SQLSTATE of a database error, `undefined` for any other error. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = codeOf(error);
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
