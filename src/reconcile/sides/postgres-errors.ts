import { SideError } from '../side.ts';
import { connectHint } from './connect-hint.ts';

interface Kind {
  readonly code: SideError['code'];
  readonly transient: boolean;
  /** What to do, added to the server's words. */
  readonly hint?: string;
}

const UNREACHABLE: Kind = { code: 'TRU_SIDE_UNREACHABLE', transient: true };
const REFUSED: Kind = { code: 'TRU_SIDE_REFUSED', transient: false };
const MISCONFIGURED: Kind = { code: 'TRU_SIDE_MISCONFIGURED', transient: false };

/** By SQLSTATE; the longest prefix that fits decides. */
const KINDS: Readonly<Record<string, Kind>> = {
  '08': UNREACHABLE,
  '40': UNREACHABLE,
  '53': UNREACHABLE,
  '57': UNREACHABLE,
  '57014': {
    ...UNREACHABLE,
    hint: 'the statement ran longer than statementTimeout; shorten window.chunk or index the time column',
  },
  '55P03': UNREACHABLE,
  '25P03': { ...UNREACHABLE, hint: 'the other side is too slow for one snapshot; shorten window.chunk' },
  '58': UNREACHABLE,
  '28': REFUSED,
  // The name may be right and the server another: nothing but the file can say which.
  '3D000': REFUSED,
  '42501': { ...REFUSED, hint: 'grant this user SELECT' },
  '22': { ...MISCONFIGURED, hint: 'a value in where or query does not fit its column' },
  '3F000': { ...MISCONFIGURED, hint: 'check the schema in table; names are taken as written' },
  '42': MISCONFIGURED,
  '42P01': { ...MISCONFIGURED, hint: 'names are taken as written: check schema and upper case' },
  '42703': { ...MISCONFIGURED, hint: 'check key, time and fields of the side; names are taken as written' },
  '42601': { ...MISCONFIGURED, hint: 'check where and query of the side' },
};

/** Puts an error of the driver or the server into the words of the contract. What is one already stays. */
export function toSideError(error: unknown, where: string): SideError {
  if (error instanceof SideError) return error;
  const code = codeOf(error);
  // Without a SQLSTATE it is the driver's word for a lost, refused or silent connection.
  const kind = code === undefined ? UNREACHABLE : kindOf(code);
  const words = error instanceof Error && error.message !== '' ? error.message : String(code ?? error);
  const hint = connectHint(error) ?? kind.hint;
  const advice = hint === undefined ? '' : ` (${hint})`;
  return new SideError(kind.code, where, `${words}${advice}`, { transient: kind.transient, cause: error });
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

function kindOf(code: string): Kind {
  // A SQLSTATE has a digit in it; EPIPE, of the same length, has none.
  if (!/^(?=.*\d)[0-9A-Z]{5}$/.test(code)) return UNREACHABLE;
  return KINDS[code] ?? KINDS[code.slice(0, 2)] ?? REFUSED;
}
