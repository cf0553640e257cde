import { SideError } from '../side.ts';

interface Kind {
  readonly code: SideError['code'];
  readonly transient: boolean;
  /** What to do, added to the server's words. */
  readonly hint?: string;
}

const UNREACHABLE: Kind = { code: 'TRU_SIDE_UNREACHABLE', transient: true };
const NO_SERVER: Kind = {
  ...UNREACHABLE,
  hint: 'check host and port of the side’s url, that the server runs, and that this machine may reach it',
};
const TIMEOUT: Kind = {
  ...UNREACHABLE,
  hint: 'the statement ran longer than statementTimeout; shorten window.chunk or index the time column',
};
const REFUSED: Kind = { code: 'TRU_SIDE_REFUSED', transient: false };
const LOGIN: Kind = { ...REFUSED, hint: 'check user and password of the side’s url' };
const RIGHTS: Kind = { ...REFUSED, hint: 'grant this user SELECT' };
const MISCONFIGURED: Kind = { code: 'TRU_SIDE_MISCONFIGURED', transient: false };

/** By the server's error number. */
const BY_NUMBER: Readonly<Record<number, Kind>> = {
  // Too many connections, of all or of this user; out of memory; disk full; shutting down.
  1040: UNREACHABLE,
  1203: UNREACHABLE,
  1226: UNREACHABLE,
  1021: UNREACHABLE,
  1037: UNREACHABLE,
  1038: UNREACHABLE,
  1041: UNREACHABLE,
  1053: UNREACHABLE,
  // The connection was killed, or lost between the server and a proxy.
  1317: UNREACHABLE,
  1927: UNREACHABLE,
  4031: UNREACHABLE,
  1152: UNREACHABLE,
  1159: UNREACHABLE,
  1161: UNREACHABLE,
  // Lock waits and deadlocks; a table that was altered after the snapshot was taken.
  1205: UNREACHABLE,
  1213: UNREACHABLE,
  1412: UNREACHABLE,
  1969: TIMEOUT,
  3024: TIMEOUT,
  1044: RIGHTS,
  1142: RIGHTS,
  1143: RIGHTS,
  1227: RIGHTS,
  1370: RIGHTS,
  1045: LOGIN,
  1698: LOGIN,
  1820: LOGIN,
  1862: LOGIN,
  3118: LOGIN,
  4151: LOGIN,
  1129: {
    ...REFUSED,
    hint: 'the server blocks this machine after failed connections; run FLUSH HOSTS there',
  },
  1130: { ...REFUSED, hint: 'the server lets nobody in from this machine; create the user for its address' },
  1049: { ...MISCONFIGURED, hint: 'check the database name in the side’s url' },
  1046: { ...MISCONFIGURED, hint: 'put the database into the side’s url, or write database.table' },
  1054: { ...MISCONFIGURED, hint: 'check key, time and fields of the side' },
  1146: { ...MISCONFIGURED, hint: 'check the table’s name; upper case counts on most servers' },
  1267: MISCONFIGURED,
  1271: MISCONFIGURED,
  1792: { ...MISCONFIGURED, hint: 'sides only read' },
};

/** By the class of the SQLSTATE, where the number is not known. */
const BY_CLASS: Readonly<Record<string, Kind>> = {
  '08': UNREACHABLE,
  '40': UNREACHABLE,
  '28': LOGIN,
  '21': MISCONFIGURED,
  '22': MISCONFIGURED,
  '42': MISCONFIGURED,
};

/** By the driver's own words. */
const BY_CODE: Readonly<Record<string, Kind>> = {
  TRUEUP_TIMEOUT: TIMEOUT,
  HANDSHAKE_NO_SSL_SUPPORT: {
    ...REFUSED,
    hint: 'the server has no TLS; set it up there, or take ssl-mode out of the url',
  },
  HANDSHAKE_SSL_ERROR: {
    ...REFUSED,
    hint: 'check ssl-mode and ssl-ca in the side’s url against the server’s certificate',
  },
  AUTH_SWITCH_PLUGIN_ERROR: LOGIN,
};

/** A statement, or a page of one, took too long and was given up by us. */
export class StatementTimeout extends Error {
  override readonly name = 'StatementTimeout';
  readonly code = 'TRUEUP_TIMEOUT';

  constructor(ms: number) {
    super(`nothing came for ${ms} ms`);
  }
}

/** Puts an error of the driver or the server into the words of the contract. What is one already stays. */
export function toSideError(error: unknown, where: string): SideError {
  if (error instanceof SideError) return error;
  const kind = kindOf(error);
  const words = error instanceof Error && error.message !== '' ? error.message : String(error);
  const hint = kind.hint === undefined ? '' : ` (${kind.hint})`;
  return new SideError(kind.code, where, `${words}${hint}`, { transient: kind.transient, cause: error });
}

function kindOf(error: unknown): Kind {
  const { errno, code, sqlState } = error as { errno?: unknown; code?: unknown; sqlState?: unknown };
  const named = typeof code === 'string' ? BY_CODE[code] : undefined;
  if (named !== undefined) return named;
  // Errors of Node.js have negative numbers; without a SQLSTATE the server said nothing.
  if (typeof errno !== 'number' || errno <= 0) return NO_SERVER;
  const state = typeof sqlState === 'string' ? sqlState.slice(0, 2) : '';
  return BY_NUMBER[errno] ?? BY_CLASS[state] ?? REFUSED;
}

/** True when the server says that this user may not ask. */
export function isForbidden(error: unknown): boolean {
  const cause = error instanceof SideError ? error.cause : error;
  const errno = (cause as { errno?: unknown } | undefined)?.errno;
  return errno === 1227 || errno === 1142 || errno === 1044;
}
