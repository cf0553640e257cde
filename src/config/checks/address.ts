import type { CrossProblem } from '../cross-problem.ts';
import type { Path } from '../path.ts';
import type { Secret } from '../secret.ts';

/** The address is never shown: it may hold a password. */
export function checkAddress(
  path: Path,
  url: Secret | undefined,
  schemes: readonly string[],
): CrossProblem[] {
  if (url === undefined || hasScheme(url, schemes)) return [];
  const wanted = schemes.map((scheme) => `${scheme}://`).join(' or ');
  return [{ path, predicate: `is no ${wanted} address`, hint: `write ${schemes[0]}://host/…` }];
}

export function hasScheme(url: Secret, schemes: readonly string[]): boolean {
  const text = url.reveal();
  return URL.canParse(text) && schemes.includes(new URL(text).protocol.slice(0, -1)) && text.includes('://');
}

export const HTTP = ['https', 'http'];
export const POSTGRES = ['postgres', 'postgresql'];
export const MYSQL = ['mysql', 'mariadb'];
export const QUEUE = ['redis', 'rediss', ...POSTGRES];
