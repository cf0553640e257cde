const MASK = '[secret]';

/** Shorter values hide nothing and would mask half of every text. */
const SHORTEST = 6;
/** A fragment of base64 this short could be found by chance. */
const SHORTEST_FRAGMENT = 8;

/** Values that are in many places and secret in none. */
const COMMON = new Set(
  (
    'secret [secret] default public localhost postgres postgresql 127.0.0.1 0.0.0.0 trueup require prefer ' +
    'disable verify-ca verify-full production development staging unlimited downstream source compensate'
  ).split(' '),
);

/**
 * A function that replaces every occurrence of the secrets by `[secret]`: as they are, URL-encoded, JSON-escaped, and
 * in base64 also as part of a longer encoded text (an `Authorization: Basic` header). Passwords of URLs
 * (`scheme://user:PASS@host`) are replaced whether they are known or not. Values of fewer than 6 characters and
 * common words are left alone.
 */
export function createRedactor(secrets: readonly string[]): (text: string) => string {
  const forms = new Set(secrets.filter(isWorthHiding).flatMap(formsOf));
  const longestFirst = [...forms].sort((a, b) => b.length - a.length);
  const known =
    longestFirst.length === 0 ? undefined : new RegExp(longestFirst.map(escapePattern).join('|'), 'g');
  return (text) => maskUrlPasswords(known === undefined ? text : text.replace(known, MASK));
}

function isWorthHiding(secret: string): boolean {
  return secret.length >= SHORTEST && !COMMON.has(secret.toLowerCase());
}

function formsOf(secret: string): string[] {
  const wellFormed = Buffer.from(secret, 'utf8').toString('utf8');
  const url = encodeURIComponent(wellFormed);
  const lowerHex = url.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase());
  const form = url.replaceAll('%20', '+');
  return [secret, url, lowerHex, form, JSON.stringify(secret).slice(1, -1), ...base64Forms(wellFormed)];
}

/** Base64 works on three bytes at a time, so a text inside a longer one has three forms; only whole groups are certain. */
function base64Forms(secret: string): string[] {
  const bytes = Buffer.from(secret, 'utf8');
  const whole = bytes.toString('base64');
  const fragments = [0, 1, 2].map((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    const end = Math.floor((bytes.length + shift) / 3) * 4;
    return encoded.slice(shift === 0 ? 0 : 4, end);
  });
  const standard = [whole, ...fragments.filter((text) => text.length >= SHORTEST_FRAGMENT)];
  return standard.flatMap((text) => [
    text,
    text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, ''),
  ]);
}

/** Starts at `://`, so that long texts without an address cost one pass. */
function maskUrlPasswords(text: string): string {
  return text.replace(/(:\/\/[^\s/?#:@"'<>]*):([^\s/?#"'<>]+)@/g, `$1:${MASK}@`);
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

const TELLING = /pass|token|secret|key|sig|auth|code/i;

/**
 * The parts of a configured value that must not be shown. Of the address of a server (a database, a queue) that is the
 * password; of an http address also a user without a password, telling parameters and long path parts (tokens of
 * webhooks); so host, database and user stay readable. Of any other text it is the whole, and of `Bearer abc` also the
 * second word.
 */
export function secretsIn(text: string): readonly string[] {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text) || !URL.canParse(text)) return [text, ...credentialOf(text)];
  const url = new URL(text);
  const web = /^https?:$/.test(url.protocol);
  const hidden = [url.password, decode(url.password)];
  if (web && url.password === '') hidden.push(url.username, decode(url.username));
  if (web) hidden.push(...url.pathname.split('/').filter((part) => part.length >= 16));
  for (const [name, value] of url.searchParams) {
    if (web ? value.length >= 16 || TELLING.test(name) : /pass/i.test(name)) hidden.push(value);
  }
  return [...new Set(hidden)].filter((part) => part !== '');
}

/**
 * True for a piece of an address that may be shown: `${env:DB_HOST}` in `postgres://app:${env:PASSWORD}@${env:DB_HOST}/x`.
 * An error must be able to name the host.
 */
export function isAddressPart(address: string, part: string): boolean {
  if (
    part === address ||
    !URL.canParse(address) ||
    secretsIn(address).some((secret) => secret.includes(part))
  )
    return false;
  const { host, protocol, username, pathname } = new URL(address);
  const web = /^https?:$/.test(protocol);
  return host.includes(part) || (!web && (username === part || pathname.slice(1) === part));
}

/** What follows the scheme of an `Authorization` header. */
function credentialOf(text: string): readonly string[] {
  const credential = /^[A-Za-z][A-Za-z0-9-]* (\S+)$/.exec(text)?.[1];
  return credential === undefined ? [] : [credential];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}
