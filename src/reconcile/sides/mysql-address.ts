import { readFileSync } from 'node:fs';
import type { SslOptions } from 'mysql2';
import type { Secret } from '../../config/secret.ts';
import { misconfigured } from './sql-config.ts';

export interface MysqlAddress {
  /** Host (and port) for people. */
  readonly shown: string;
  readonly host: string;
  readonly port: number;
  /** A Unix socket that is used instead of host and port. */
  readonly socket: string | undefined;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly sslMode: SslMode;
  /** File with the certificates of the authorities that may sign the server's. */
  readonly sslCa: string | undefined;
}

const SSL_MODES = ['DISABLED', 'REQUIRED', 'VERIFY_CA', 'VERIFY_IDENTITY'] as const;
type SslMode = (typeof SSL_MODES)[number];

const PARAMETERS = ['ssl-mode', 'ssl-ca', 'socket'];

/**
 * Reads `mysql://user:password@host:port/database?ssl-mode=…&ssl-ca=…&socket=…`. An unreadable address may hold the
 * password anywhere, so nothing of it is shown. Throws `SideError`; `name` says which side it is about.
 */
export function mysqlAddress(url: Secret, name: string): MysqlAddress {
  const text = url.reveal();
  if (!URL.canParse(text)) throw misconfigured(`${name} mysql`, 'the url is no mysql:// address');
  const { hostname, port, username, password, pathname, searchParams } = new URL(text);
  const unknown = [...searchParams.keys()].find((key) => !PARAMETERS.includes(key));
  if (unknown !== undefined) {
    throw misconfigured(
      `${name} mysql`,
      `the url has an unknown parameter; known are ${PARAMETERS.join(', ')}`,
    );
  }
  const socket = searchParams.get('socket') ?? undefined;
  const host = hostname === '' ? 'localhost' : hostname.replace(/^\[|\]$/g, '');
  return {
    shown: socket ?? (port === '' ? hostname || host : `${hostname}:${port}`),
    host,
    port: port === '' ? 3306 : Number(port),
    socket,
    user: decoded(username),
    password: decoded(password),
    database: decoded(pathname.slice(1)),
    sslMode: sslMode(searchParams.get('ssl-mode'), name),
    sslCa: searchParams.get('ssl-ca') ?? undefined,
  };
}

function sslMode(written: string | null, name: string): SslMode {
  const mode = SSL_MODES.find((known) => known === (written ?? 'DISABLED').toUpperCase());
  if (mode !== undefined) return mode;
  throw misconfigured(`${name} mysql`, `the url's ssl-mode is unknown; write one of ${SSL_MODES.join(', ')}`);
}

/** What the driver is told about TLS; undefined without it. Throws when the certificate file cannot be read. */
export function sslOptions({ sslMode, sslCa }: MysqlAddress): SslOptions | undefined {
  if (sslMode === 'DISABLED') return undefined;
  return {
    rejectUnauthorized: sslMode !== 'REQUIRED',
    verifyIdentity: sslMode === 'VERIFY_IDENTITY',
    ...(sslCa === undefined ? {} : { ca: authorities(sslCa) }),
  };
}

function authorities(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw misconfigured('mysql', `the file of the url's ssl-ca cannot be read: ${path}`, error);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    // A lone % is taken as written.
    if (error instanceof URIError) return text;
    throw error;
  }
}
