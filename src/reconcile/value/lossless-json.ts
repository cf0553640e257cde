/**
 * JSON with numbers kept as their exact text. `JSON.parse` turns `9007199254740993` into another number, so it is
 * never used for values (rule 5.6).
 */
export type JsonNode =
  | { readonly kind: 'null' }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'array'; readonly items: readonly JsonNode[] }
  | { readonly kind: 'object'; readonly members: ReadonlyMap<string, JsonNode> };

export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
}

/** Deeper documents are refused, so that a hostile answer cannot exhaust the stack. */
const MAX_DEPTH = 500;

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
/** Everything a string may hold unescaped. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what JSON forbids there
const PLAIN = /[^"\\\u0000-\u001f]*/y;
/** Under the u flag a proper pair is one code point, so only halves match. */
const LONE_SURROGATE = /\p{Surrogate}/u;
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/**
 * Reads one JSON document (RFC 8259), strictly: one value, no trailing text, no repeated member name (which of the
 * two is meant cannot be known), no lone surrogate (it has no UTF-8 form). Throws `JsonSyntaxError` with the offset.
 */
export function parseJson(text: string): JsonNode {
  const reader = new Reader(text);
  const node = reader.value(0);
  reader.end();
  return node;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): JsonNode {
    if (depth > MAX_DEPTH) throw this.#error(`nested deeper than ${MAX_DEPTH} levels`);
    this.#match(SPACE);
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object(depth);
      case '[':
        return this.#array(depth);
      case '"':
        return { kind: 'string', value: this.#string() };
      case 't':
        return this.#word('true', { kind: 'boolean', value: true });
      case 'f':
        return this.#word('false', { kind: 'boolean', value: false });
      case 'n':
        return this.#word('null', { kind: 'null' });
      default:
        return this.#number();
    }
  }

  end(): void {
    this.#match(SPACE);
    if (this.#at < this.#text.length) throw this.#error('text after the end of the document');
  }

  #object(depth: number): JsonNode {
    const members = new Map<string, JsonNode>();
    this.#at += 1;
    if (this.#accept('}')) return { kind: 'object', members };
    do {
      this.#match(SPACE);
      if (this.#text[this.#at] !== '"') throw this.#error('a member name is expected');
      const name = this.#string();
      if (members.has(name)) throw this.#error(`the member ${JSON.stringify(name)} stands twice`);
      if (!this.#accept(':')) throw this.#error('":" is expected');
      members.set(name, this.value(depth + 1));
    } while (this.#accept(','));
    if (!this.#accept('}')) throw this.#error('"," or "}" is expected');
    return { kind: 'object', members };
  }

  #array(depth: number): JsonNode {
    const items: JsonNode[] = [];
    this.#at += 1;
    if (this.#accept(']')) return { kind: 'array', items };
    do items.push(this.value(depth + 1));
    while (this.#accept(','));
    if (!this.#accept(']')) throw this.#error('"," or "]" is expected');
    return { kind: 'array', items };
  }

  #string(): string {
    this.#at += 1;
    let value = this.#match(PLAIN);
    while (this.#text[this.#at] === '\\') {
      value += this.#escape();
      value += this.#match(PLAIN);
    }
    if (this.#text[this.#at] !== '"') throw this.#error('a string is not ended');
    this.#at += 1;
    if (LONE_SURROGATE.test(value)) throw this.#error('a string holds half a surrogate pair');
    return value;
  }

  #escape(): string {
    const letter = this.#text[this.#at + 1] ?? '';
    if (letter === 'u') {
      const hex = this.#text.slice(this.#at + 2, this.#at + 6);
      if (!/^[0-9a-fA-F]{4}$/.test(hex)) throw this.#error('\\u needs four hex digits');
      this.#at += 6;
      return String.fromCharCode(Number.parseInt(hex, 16));
    }
    const plain = Object.hasOwn(ESCAPES, letter) ? ESCAPES[letter] : undefined;
    if (plain === undefined) throw this.#error('an unknown escape');
    this.#at += 2;
    return plain;
  }

  #number(): JsonNode {
    const text = this.#match(NUMBER);
    if (text === '') throw this.#error('a value is expected');
    return { kind: 'number', text };
  }

  #word(word: string, node: JsonNode): JsonNode {
    if (!this.#text.startsWith(word, this.#at)) throw this.#error('a value is expected');
    this.#at += word.length;
    return node;
  }

  #accept(character: string): boolean {
    this.#match(SPACE);
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }

  #error(message: string): JsonSyntaxError {
    return new JsonSyntaxError(`${message} at offset ${this.#at} of ${this.#text.length}`);
  }
}
