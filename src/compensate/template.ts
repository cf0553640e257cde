import { EXIT, TrueupError } from '../error.ts';
import type { Finding, Value } from '../reconcile/record.ts';

/** A template cannot be filled. The message names the placeholder, the hint what is known. */
export class TemplateError extends TrueupError {
  override readonly name = 'TemplateError';

  constructor(message: string, hint?: string) {
    super('TRU_TEMPLATE', message, { exit: EXIT.usage, ...(hint === undefined ? {} : { hint }) });
  }
}

/** What placeholders stand for: `source.amount`, `key.order_no`, `key`, `idempotencyKey`, ... Null has no text. */
export type Placeholders = ReadonlyMap<string, string | null>;

/** The placeholders that a record gives: `{key}` (when it has one part), `{key.NAME}`, `{source.NAME}`, `{downstream.NAME}`. */
export function recordPlaceholders(
  finding: Finding,
  keyNames: readonly string[],
): Map<string, string | null> {
  const known = new Map<string, string | null>();
  const [only] = finding.key;
  if (finding.key.length === 1 && only !== undefined) known.set('key', only);
  keyNames.forEach((name, index) => {
    known.set(`key.${name}`, finding.key[index] ?? null);
  });
  for (const side of ['source', 'downstream'] as const) {
    for (const [name, value] of Object.entries(finding[side]?.fields ?? {})) {
      // A value that cannot be read fairly must not be sent to anybody: it stays unknown.
      if (value.type !== 'undecided') known.set(`${side}.${name}`, textOf(value));
    }
  }
  return known;
}

/** The canonical text of a value; null for null. */
export function textOf(value: Value): string | null {
  return value.type === 'null' ? null : value.text;
}

/** `{name}` or `{name|number}`. Braces around anything else (`{}`, `{"a":1}`) are ordinary text. */
const PLACEHOLDER = /\{([\p{L}\p{N}_.|\s-]+)\}/gu;
const WHOLE = /^\{([\p{L}\p{N}_.|\s-]+)\}$/u;
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/**
 * Fills every placeholder of a text; `encode` is applied to each value. Throws `TemplateError` for an unknown
 * placeholder, for null (which has no text) and for `|number`, which only makes sense as a whole JSON value.
 */
export function fillText(
  template: string,
  known: Placeholders,
  encode: (value: string, name: string) => string = (value) => value,
): string {
  return template.replaceAll(PLACEHOLDER, (_, inner: string) => {
    const { name, number } = readPlaceholder(inner, known);
    if (number) throw new TemplateError(`{${inner}} stands inside a text; |number is for a whole JSON value`);
    return encode(textFor(name, known), name);
  });
}

/** As `fillText`, but a placeholder that is the whole text may be null, and then the result is. */
export function fillOptional(template: string, known: Placeholders): string | null {
  const whole = WHOLE.exec(template);
  if (whole === null) return fillText(template, known);
  return wholeValue(whole[1] ?? '', known).text;
}

/**
 * A URL path: each value is percent-encoded. Throws `TemplateError` also for a value that is empty or would be a `.`
 * or `..` segment: the call would go to another address than the config says.
 */
export function fillPath(template: string, known: Placeholders): string {
  const path = fillText(template, known, (value, name) => {
    if (value === '') throw new TemplateError(`{${name}} is empty, and stands in the path ${template}`);
    return encodeUrl(value, name);
  });
  const [way = ''] = path.split('?');
  if (way.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment)))
    throw new TemplateError(`the path ${template} becomes ${path}, which is another address`);
  return path;
}

/** A query string without its `?`, percent-encoded. A parameter whose whole value is a null placeholder is left out. */
export function fillQuery(query: Readonly<Record<string, string>>, known: Placeholders): string {
  return Object.entries(query)
    .map(([name, template]) => [name, fillOptional(template, known)] as const)
    .flatMap(([name, value]) =>
      value === null ? [] : [`${encodeUrl(name, name)}=${encodeUrl(value, name)}`],
    )
    .join('&');
}

/** Header values. A header whose whole value is a null placeholder is left out; control characters are refused. */
export function fillHeaders(
  headers: Readonly<Record<string, string>>,
  known: Placeholders,
): Record<string, string> {
  const filled: Record<string, string> = {};
  for (const [name, template] of Object.entries(headers)) {
    const value = fillOptional(template, known);
    if (value === null) continue;
    if (/\p{Cc}/u.test(value)) throw new TemplateError(`the header ${name} would hold a control character`);
    filled[name] = value;
  }
  return filled;
}

/**
 * The JSON text of a body. Strings are filled deep down, also in names of members; a placeholder that is a whole
 * string becomes null where its value is, and with `|number` a bare number token with the exact digits of the value.
 */
export function fillJson(template: unknown, known: Placeholders): string {
  if (typeof template === 'string') {
    const whole = WHOLE.exec(template);
    if (whole === null) return JSON.stringify(fillText(template, known));
    const { text, number } = wholeValue(whole[1] ?? '', known);
    return number && text !== null ? text : JSON.stringify(text);
  }
  if (Array.isArray(template)) return `[${template.map((item) => fillJson(item, known)).join(',')}]`;
  if (typeof template !== 'object' || template === null) return JSON.stringify(template ?? null);
  const members = Object.entries(template).map(
    ([name, value]) => `${JSON.stringify(fillText(name, known))}:${fillJson(value, known)}`,
  );
  return `{${members.join(',')}}`;
}

function wholeValue(inner: string, known: Placeholders): { text: string | null; number: boolean } {
  const { name, number } = readPlaceholder(inner, known);
  const text = known.get(name) ?? null;
  if (number && text !== null && !JSON_NUMBER.test(text))
    throw new TemplateError(`{${inner}} is "${text}", which is no JSON number`, 'leave |number away');
  return { text, number };
}

function readPlaceholder(inner: string, known: Placeholders): { name: string; number: boolean } {
  const number = inner.endsWith('|number');
  const name = number ? inner.slice(0, -'|number'.length) : inner;
  if (known.has(name)) return { name, number };
  throw new TemplateError(
    `{${inner}} is not known here`,
    `known are ${[...known.keys()].map((k) => `{${k}}`).join(', ')}`,
  );
}

function textFor(name: string, known: Placeholders): string {
  const text = known.get(name) ?? null;
  if (text === null)
    throw new TemplateError(
      `{${name}} is null, and null has no text`,
      'make it the whole value, or use another field',
    );
  return text;
}

function encodeUrl(value: string, name: string): string {
  if (/\p{Surrogate}/u.test(value))
    throw new TemplateError(`${name} is no valid Unicode and cannot stand in a URL`);
  return encodeURIComponent(value);
}
