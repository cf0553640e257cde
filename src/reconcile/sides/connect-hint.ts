/** What to check when no session with a PostgreSQL server could be opened; `undefined` for any other error. */
export function connectHint(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const hint =
    BY_CODE.find(([pattern]) => pattern.test(code)) ?? BY_MESSAGE.find(([p]) => p.test(error.message));
  if (hint !== undefined) return hint[1];
  return error.cause === undefined ? undefined : connectHint(error.cause);
}

type Hints = readonly (readonly [RegExp, string])[];

const NETWORK =
  'check host and port, that the server runs and listens there, and that this machine may reach it';
const TLS =
  'check TLS: sslmode in the address must be what the server offers (disable, require, verify-full), and its certificate must be valid for this host; a private authority is named with sslrootcert';

/** SQLSTATEs of a refused session, and codes of Node's network and TLS. */
const BY_CODE: Hints = [
  [
    /^(ENOTFOUND|EAI_AGAIN|EAI_FAIL|EAI_NODATA)$/,
    'check the host name, and that this machine can resolve it',
  ],
  [
    /^(ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL)$/,
    NETWORK,
  ],
  [/^(ENOENT|EACCES)$/, 'check the path of the socket in the address'],
  [/^28P01$/, 'check user and password'],
  [
    /^28000$/,
    'check user and password, that the role may log in, and that pg_hba.conf lets it in from this machine, with or without TLS',
  ],
  [/^3D000$/, 'check the name of the database'],
  [/^53300$/, 'the server has no free connection: raise max_connections, or use a pooler'],
  [/^57P0[1-5]$/, 'the server is starting or stopping: try again'],
  [/^(ERR_TLS_|ERR_SSL_|ERR_OSSL|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_|EPROTO|HOSTNAME_MISMATCH)/, TLS],
];

/** What the driver says without a code. */
const BY_MESSAGE: Hints = [
  [/does not support SSL|SSL connection/i, TLS],
  [/permission denied for database/, 'grant this role CONNECT on the database'],
  [/client password must be a string/, 'the server asks for a password: put one into the address'],
  [/timeout expired|connection timeout|Connection terminated|connection was lost/i, NETWORK],
];

/** Host and port as an error names them; never user, password or parameters. */
export function serverOf(address: string): { readonly server: string; readonly database: string } {
  try {
    const { protocol, hostname, port, pathname, searchParams, username } = new URL(address);
    if (!/^postgres(ql)?:$/.test(protocol)) throw new TypeError('no address of a PostgreSQL server');
    const host = (searchParams.get('host') ?? hostname) || 'localhost';
    const database = decodeURIComponent(pathname.slice(1)) || decodeURIComponent(username) || 'postgres';
    return { server: `${host}:${(searchParams.get('port') ?? port) || '5432'}`, database };
  } catch {
    // An unreadable address may hold the password anywhere, so nothing of it is shown; connecting will fail and say so.
    return { server: '[unreadable url]', database: '?' };
  }
}
