import type { Value } from '../record.ts';
import { type JsonNode, JsonSyntaxError, parseJson } from './lossless-json.ts';

/** Canonical texts of the elements; null is the element null. */
export type Elements = readonly (string | null | Elements)[];
export type ElementReader = (raw: string | JsonNode) => Value;
export type ElementsReading = { readonly elements: Elements } | { readonly undecided: string };

/**
 * The elements of a PostgreSQL array literal (`{1,NULL,"a,b",{2}}`) or of a JSON array, each read by `read`. An array
 * with bounds of its own (`[0:1]={...}`) is undecided: no other system has them.
 */
export function readElements(raw: string | JsonNode, read: ElementReader): ElementsReading {
  try {
    const node = typeof raw === 'string' ? nodeOf(raw.trim()) : raw;
    if (typeof node === 'string') return { elements: new LiteralReader(node, read).array() };
    if (node.kind !== 'array') return { undecided: `a JSON ${node.kind}, no array` };
    return { elements: elementsOf(node, read) };
  } catch (error) {
    if (error instanceof ArrayError || error instanceof JsonSyntaxError) return { undecided: error.message };
    throw error;
  }
}

class ArrayError extends Error {
  override readonly name = 'ArrayError';
}

function nodeOf(text: string): string | JsonNode {
  if (text.startsWith('{')) return text;
  if (/^\[[^\]]*\]=/.test(text)) throw new ArrayError('an array with bounds of its own');
  if (!text.startsWith('[')) throw new ArrayError('no array; expected {1,2} or [1,2]');
  return parseJson(text);
}

function elementsOf(node: Extract<JsonNode, { kind: 'array' }>, read: ElementReader): Elements {
  return node.items.map((item) => (item.kind === 'array' ? elementsOf(item, read) : textOf(item, read)));
}

function textOf(raw: string | JsonNode, read: ElementReader): string | null {
  const value = read(raw);
  if (value.type === 'undecided') throw new ArrayError(`an element ${value.reason}`);
  return value.type === 'null' ? null : value.text;
}

/** Everything an element may hold unquoted. */
const BARE = /[^{}",\\\s](?:[^{}",\\]*[^{}",\\\s])?/y;
const QUOTED = /"((?:[^"\\]|\\[\s\S])*)"/y;
const SPACE = /\s*/y;

class LiteralReader {
  readonly #text: string;
  readonly #read: ElementReader;
  #at = 0;

  constructor(text: string, read: ElementReader) {
    this.#text = text;
    this.#read = read;
  }

  array(): Elements {
    const elements = this.#array(0);
    this.#match(SPACE);
    if (this.#at < this.#text.length) throw this.#broken();
    return elements;
  }

  #array(depth: number): Elements {
    // PostgreSQL has six dimensions at most.
    if (depth > 6 || !this.#accept('{')) throw this.#broken();
    const elements: (string | null | Elements)[] = [];
    if (this.#accept('}')) return elements;
    do elements.push(this.#element(depth));
    while (this.#accept(','));
    if (!this.#accept('}')) throw this.#broken();
    return elements;
  }

  #element(depth: number): string | null | Elements {
    this.#match(SPACE);
    if (this.#text[this.#at] === '{') return this.#array(depth + 1);
    const quoted = this.#match(QUOTED);
    if (quoted !== undefined) return textOf((quoted[1] ?? '').replace(/\\([\s\S])/g, '$1'), this.#read);
    const bare = this.#match(BARE)?.[0];
    if (bare === undefined) throw this.#broken();
    return bare.toUpperCase() === 'NULL' ? null : textOf(bare, this.#read);
  }

  #accept(character: string): boolean {
    this.#match(SPACE);
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) return undefined;
    this.#at += found[0].length;
    return found;
  }

  #broken(): ArrayError {
    return new ArrayError(`no array literal: unexpected text at offset ${this.#at} of ${this.#text.length}`);
  }
}

/** The elements of a canonical array, sorted, each as often as it stands or once: the text of a multiset or a set. */
export function orderFree(canonical: string, repeats: 'count' | 'ignore'): string {
  const elements = (JSON.parse(canonical) as Elements).map((element) => JSON.stringify(element)).sort();
  return `[${(repeats === 'ignore' ? [...new Set(elements)] : elements).join(',')}]`;
}
