import type { Value, ValueType } from '../record.ts';
import { canonicalBoolean } from './boolean.ts';
import { canonicalBytes } from './bytes.ts';
import { canonicalDate } from './date.ts';
import { canonicalDecimal } from './decimal.ts';
import { canonicalFloat } from './float.ts';
import { canonicalInstant } from './instant.ts';
import { canonicalInteger } from './integer.ts';
import { canonicalJson, canonicalJsonText } from './json.ts';
import type { JsonNode } from './lossless-json.ts';
import { canonicalUuid } from './uuid.ts';

/** A cell as a side gave it: PostgreSQL's text form, or a piece of a JSON document. */
export type RawCell = string | null | JsonNode;

export interface CanonicalOptions {
  /** IANA zone of local times without offset. */
  readonly zone?: string | undefined;
}

const NULL: Value = { type: 'null' };

const READERS: Readonly<
  Record<Exclude<ValueType, 'text' | 'instant' | 'json'>, (text: string) => string | undefined>
> = {
  integer: canonicalInteger,
  decimal: canonicalDecimal,
  float: canonicalFloat,
  boolean: canonicalBoolean,
  date: canonicalDate,
  uuid: canonicalUuid,
  bytes: canonicalBytes,
};

/** The typed value of a cell. What cannot be read as its type is `undecided`, never quietly something else. */
export function canonicalise(raw: RawCell, type: ValueType, options: CanonicalOptions = {}): Value {
  if (raw === null) return NULL;
  if (typeof raw === 'string') return fromText(raw, type, options);
  if (raw.kind === 'null') return NULL;
  if (type === 'json') return { type, text: canonicalJson(raw) };
  const text = scalarText(raw);
  if (text !== undefined) return fromText(text, type, options);
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
    case 'json': {
      const json = canonicalJsonText(text);
      return json === undefined ? undecided(text, 'no strict JSON') : { type, text: json };
    }
    case 'instant': {
      const read = canonicalInstant(text, options.zone);
      return 'text' in read ? { type, text: read.text } : undecided(text, read.undecided);
    }
    default: {
      const read = READERS[type](text);
      return read === undefined ? undecided(text, `cannot be read as ${type}`) : { type, text: read };
    }
  }
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
