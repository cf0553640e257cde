import type { Rule } from '../../config/schema.ts';
import type { Value, ValueType } from '../record.ts';
import { readElements } from './array.ts';
import { canonicalBoolean } from './boolean.ts';
import { type BytesEncoding, canonicalBytes } from './bytes.ts';
import { readDate } from './date.ts';
import { canonicalDecimal, writtenScale } from './decimal.ts';
import { canonicalFloat } from './float.ts';
import { canonicalInstant } from './instant.ts';
import { canonicalInteger } from './integer.ts';
import { canonicalJson, readJsonText } from './json.ts';
import type { JsonNode } from './lossless-json.ts';
import { type NumberFormat, plainNumber } from './number-format.ts';
import { canonicalTime } from './time.ts';
import { canonicalUuid } from './uuid.ts';

/** A cell as a side gave it: PostgreSQL's text form, or a piece of a JSON document. */
export type RawCell = string | null | JsonNode;

export interface CanonicalOptions {
  /** IANA zone of local times without offset. */
  readonly zone?: string | undefined;
  /** How texts write numbers; left out: plain. */
  readonly format?: NumberFormat | undefined;
  /** How texts write bytes; left out: hex. */
  readonly encoding?: BytesEncoding | undefined;
  /** Type of the elements of an array or set; left out: text. */
  readonly of?: ValueType | undefined;
  /** True keeps the digits after the point of a decimal, for a rule that compares them. */
  readonly keepScale?: boolean | undefined;
  /** True for a column of floats of 32 bits. */
  readonly single?: boolean | undefined;
}

/**
 * What a field's rule says about reading its cells. `native` is the type of the column, where the side knows it: how
 * texts write numbers or bytes says nothing about columns of numbers and bytes, which have one form.
 */
export function readingBy(rule: Rule | undefined, native: ValueType = 'text'): CanonicalOptions {
  const written = native === 'text';
  return {
    zone: rule?.zone,
    format: written ? rule?.format : undefined,
    encoding: written ? rule?.encoding : undefined,
    of: rule?.of,
    keepScale: rule?.scale === 'compare',
  };
}

const NULL: Value = { type: 'null' };

/** The typed value of a cell. What cannot be read as its type is `undecided`, never quietly something else. */
export function canonicalise(raw: RawCell, type: ValueType, options: CanonicalOptions = {}): Value {
  if (raw === null) return NULL;
  if (typeof raw === 'string') return fromText(raw, type, options);
  if (raw.kind === 'null') return NULL;
  if (type === 'json') return { type, text: canonicalJson(raw) };
  if (type === 'array' || type === 'set') return fromElements(raw, type, options);
  const text = scalarText(raw);
  // A JSON number has one form, whatever the texts of this side look like.
  if (text !== undefined) return fromText(text, type, raw.kind === 'number' ? plain(options) : options);
  const json = canonicalJson(raw);
  return type === 'text' ? { type, text: json } : undecided(json, `a JSON ${raw.kind}, no ${type}`);
}

/** The type a JSON value has by itself, for fields whose rule names none. A string is text, whatever it looks like. */
export function typeOfJson(node: JsonNode): ValueType {
  switch (node.kind) {
    case 'number':
      return canonicalInteger(node.text) === undefined ? 'decimal' : 'integer';
    case 'boolean':
      return 'boolean';
    case 'array':
    case 'object':
      return 'json';
    default:
      return 'text';
  }
}

function fromText(text: string, type: ValueType, options: CanonicalOptions): Value {
  switch (type) {
    case 'text':
      return { type, text };
    case 'integer':
    case 'decimal':
    case 'float':
      return fromNumber(text, type, options);
    case 'boolean':
      return read(text, type, canonicalBoolean(text));
    case 'uuid':
      return read(text, type, canonicalUuid(text));
    case 'bytes':
      return read(text, type, canonicalBytes(text, options.encoding));
    case 'array':
    case 'set':
      return fromElements(text, type, options);
    case 'json':
      return fromReading(text, type, readJsonText(text));
    case 'instant':
      return fromReading(text, type, canonicalInstant(text, options.zone));
    case 'date':
      return fromReading(text, type, readDate(text, options.zone));
    case 'time':
      return fromReading(text, type, canonicalTime(text));
  }
}

function fromReading(
  raw: string,
  type: ValueType,
  reading: { readonly text: string } | { readonly undecided: string },
): Value {
  return 'text' in reading ? { type, text: reading.text } : undecided(raw, reading.undecided);
}

const NUMBERS = { integer: canonicalInteger, decimal: canonicalDecimal, float: canonicalFloat } as const;

function fromNumber(text: string, type: keyof typeof NUMBERS, options: CanonicalOptions): Value {
  const number = options.format === undefined ? text : plainNumber(text, options.format);
  const canonical = number === undefined ? undefined : NUMBERS[type](number);
  if (number === undefined || canonical === undefined) {
    const form = options.format === undefined ? '' : ` written as ${options.format}`;
    return undecided(text, `cannot be read as ${type}${form}`);
  }
  const scale = options.keepScale ? writtenScale(number) : undefined;
  if (scale !== undefined) return { type, text: canonical, scale };
  return options.single && type === 'float'
    ? { type, text: canonical, single: true }
    : { type, text: canonical };
}

function fromElements(raw: string | JsonNode, type: 'array' | 'set', options: CanonicalOptions): Value {
  const { of = 'text', zone } = options;
  const found = readElements(raw, (element) => readElement(element, of, zone));
  const text = typeof raw === 'string' ? raw : canonicalJson(raw);
  return 'elements' in found
    ? { type, text: JSON.stringify(found.elements) }
    : undecided(text, found.undecided);
}

/** Numbers among texts are taken by what they are worth, so that `[1.0]` and `{1}` hold the same. */
function readElement(element: string | JsonNode, of: ValueType, zone: string | undefined): Value {
  const isNumber = typeof element !== 'string' && element.kind === 'number';
  const value = canonicalise(element, isNumber && of === 'text' ? 'decimal' : of, { zone });
  return isNumber && of === 'text' && value.type === 'decimal' ? { type: 'text', text: value.text } : value;
}

function read(text: string, type: ValueType, canonical: string | undefined): Value {
  return canonical === undefined ? undecided(text, `cannot be read as ${type}`) : { type, text: canonical };
}

function plain(options: CanonicalOptions): CanonicalOptions {
  return { ...options, format: undefined };
}

function scalarText(node: JsonNode): string | undefined {
  switch (node.kind) {
    case 'string':
      return node.value;
    case 'number':
      return node.text;
    case 'boolean':
      return String(node.value);
    default:
      return undefined;
  }
}

function undecided(text: string, reason: string): Value {
  return { type: 'undecided', text, reason };
}
