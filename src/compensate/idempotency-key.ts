import { createHash } from 'node:crypto';
import { EXIT, TrueupError } from '../error.ts';
import type { Key } from '../reconcile/record.ts';
import type { Payload } from './action.ts';

/** No idempotency key can be made; the record cannot be repaired until the config or the record changes. */
export class IdempotencyKeyError extends TrueupError {
  override readonly name = 'IdempotencyKeyError';

  constructor(message: string, hint: string) {
    super('TRU_IDEMPOTENCY_KEY', message, { exit: EXIT.usage, hint });
  }
}

/** Longer keys are cut and end in a digest, so that every header and column takes them. */
const MAX_LENGTH = 200;
/** The longest original key that is used as it is. */
const MAX_ORIGINAL = 255;

export interface KeyInput {
  readonly template: string;
  readonly reconciliation: string;
  readonly key: Key;
  /** Names of the key's parts, in the same order, for `{key.NAME}`. */
  readonly keyNames: readonly string[];
  readonly operation: string;
  readonly businessDate: string | null;
  /** Canonical texts of the fields; null for null. */
  readonly source: Readonly<Record<string, string | null>>;
  readonly downstream: Readonly<Record<string, string | null>>;
  /** Name of the source field that holds the original call's key. */
  readonly from: string | undefined;
}

/**
 * The idempotency key of a repair (rule 6.1), without its revision: printable ASCII, at most 200 characters. Values
 * are escaped so that two different inputs never give the same key. With `from` it is the original call's key, byte
 * for byte. Throws `IdempotencyKeyError` for a placeholder that would not be the same next time, for a template that
 * is the same for every record, and for an original key that fits no header.
 */
export function idempotencyKey(input: KeyInput): string {
  if (input.from !== undefined) return originalKey(input.from, input.source);
  const key = fill(input);
  if (key.length <= MAX_LENGTH) return key;
  const digest = createHash('sha256').update(key).digest('hex');
  return `${key.slice(0, MAX_LENGTH - digest.length - 1)}~${digest}`;
}

/** The key as it is sent: `:r1` is appended from the first revision on (rule 6.2). */
export function withRevision(key: string, revision: number): string {
  return revision > 0 ? `${key}:r${revision}` : key;
}

/** SHA-256 of the payload's canonical JSON: the order of members does not matter (rule 6.3). */
export function fingerprint(payload: Payload): string {
  return createHash('sha256').update(canonicalJson(payload)).digest('hex');
}

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}

function originalKey(from: string, source: KeyInput['source']): string {
  const text = source[from];
  const fits = typeof text === 'string' && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text);
  if (fits && text.length <= MAX_ORIGINAL) return text;
  const found =
    text === undefined
      ? 'is no field of the source record'
      : text === null
        ? 'is null'
        : 'fits no HTTP header';
  throw new IdempotencyKeyError(
    `the original key in source.${from} ${found}`,
    `it must be 1 to ${MAX_ORIGINAL} printable ASCII characters; name another field in idempotency.from, or use a template`,
  );
}

// ---------------------------------------------------------------------------------------------------- template

type Piece = { readonly literal: string } | { readonly name: string };

function fill(input: KeyInput): string {
  const pieces = readTemplate(input.template);
  const separators = pieces.flatMap((piece, index) =>
    'literal' in piece && index > 0 ? [piece.literal.charAt(0)] : [],
  );
  return pieces
    .map((piece) =>
      'literal' in piece ? piece.literal : textForName(piece.name, input, new Set(separators)),
    )
    .join('');
}

/**
 * Cuts a template into texts and placeholders. What follows a placeholder must begin with a mark that escaped values
 * cannot contain: otherwise `{a}{b}` would be the same key for ("1", "23") and ("12", "3").
 */
function readTemplate(template: string): readonly Piece[] {
  const pieces = template
    .split(/(\{[^{}]*\})/)
    .filter((part) => part !== '')
    .map((part): Piece => (part.startsWith('{') ? { name: part.slice(1, -1) } : { literal: part }));
  const refuse = (what: string, hint: string) =>
    new IdempotencyKeyError(`the idempotency template "${template}" ${what}`, hint);
  if (!/^[\x21-\x7e]+$/.test(template))
    throw refuse('is empty or not printable ASCII', 'leave spaces and accents out');
  if (!pieces.some((piece) => 'name' in piece && (piece.name === 'businessKey' || piece.name.includes('.'))))
    throw refuse('is the same for every record', 'put {businessKey} into it');
  pieces.forEach((piece, index) => {
    const before = pieces[index - 1];
    if (before === undefined || 'literal' in before) return;
    if ('name' in piece || /^[A-Za-z0-9%~{}]/.test(piece.literal))
      throw refuse('has placeholders that run into each other', 'put a mark such as : between them');
  });
  return pieces;
}

function textForName(name: string, input: KeyInput, separators: ReadonlySet<string>): string {
  if (name === 'businessKey') return input.key.map((part) => escapePart(part, separators)).join('~');
  const value = lookUp(name, input);
  if (value === undefined) {
    throw new IdempotencyKeyError(
      `{${name}} cannot be part of an idempotency key`,
      'only what is the same at every try can: {reconciliation}, {businessKey}, {operation}, {businessDate}, ' +
        '{key.NAME}, {source.FIELD}, {downstream.FIELD} of the record',
    );
  }
  return value === null ? NULL_TEXT : escapePart(value, separators);
}

function lookUp(name: string, input: KeyInput): string | null | undefined {
  if (name === 'reconciliation' || name === 'operation' || name === 'businessDate') return input[name];
  const dot = name.indexOf('.');
  const field = name.slice(dot + 1);
  switch (name.slice(0, dot)) {
    case 'key':
      return input.key[input.keyNames.indexOf(field)];
    case 'source':
      return Object.hasOwn(input.source, field) ? input.source[field] : undefined;
    case 'downstream':
      return Object.hasOwn(input.downstream, field) ? input.downstream[field] : undefined;
    default:
      return undefined;
  }
}

/** No escaped text can look like this: after `%` it always has two hex digits or `u`. */
const NULL_TEXT = '%-';

/** Percent-encodes what is not printable ASCII, the escape itself, `:`, the joint `~` and the template's separators. */
function escapePart(text: string, separators: ReadonlySet<string>): string {
  let escaped = '';
  for (const character of text) {
    const plain = /^[\x21-\x7e]$/.test(character) && !'%:~'.includes(character) && !separators.has(character);
    escaped += plain ? character : escapeCharacter(character);
  }
  return escaped;
}

function escapeCharacter(character: string): string {
  // Half a surrogate pair has no UTF-8 form; two different halves must stay different.
  if (/^\p{Surrogate}$/u.test(character)) return `%u${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return [...Buffer.from(character, 'utf8')]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('');
}
