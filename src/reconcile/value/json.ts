import { canonicalDecimal } from './decimal.ts';
import { canonicalFloat } from './float.ts';
import { type JsonNode, JsonSyntaxError, parseJson } from './lossless-json.ts';

/** Exact numbers, or the nearest floats of 64 bits for systems that keep JSON numbers so. */
export type JsonNumbers = 'exact' | 'float';

/** One text per JSON value: members sorted by name, no white space, numbers exact (`1e2`, `100` and `100.0` agree). */
export function canonicalJson(node: JsonNode, numbers: JsonNumbers = 'exact'): string {
  switch (node.kind) {
    case 'null':
      return 'null';
    case 'boolean':
      return String(node.value);
    case 'number':
      return canonicalNumber(node.text, numbers);
    case 'string':
      return JSON.stringify(node.value);
    case 'array':
      return `[${node.items.map((item) => canonicalJson(item, numbers)).join(',')}]`;
    case 'object': {
      const members = [...node.members].sort(([a], [b]) => (a < b ? -1 : 1));
      const texts = members.map(
        ([name, value]) => `${JSON.stringify(name)}:${canonicalJson(value, numbers)}`,
      );
      return `{${texts.join(',')}}`;
    }
  }
}

/** A number that no float can hold stays exact. */
function canonicalNumber(text: string, numbers: JsonNumbers): string {
  const exact = canonicalDecimal(text) ?? text;
  if (numbers === 'exact') return exact;
  const float = canonicalFloat(exact);
  return (float === undefined ? undefined : canonicalDecimal(float)) ?? exact;
}

export type JsonReading = { readonly text: string } | { readonly undecided: string };

/** The same from a JSON text, or why it is no strict JSON (see `parseJson`). */
export function readJsonText(text: string, numbers: JsonNumbers = 'exact'): JsonReading {
  try {
    return { text: canonicalJson(parseJson(text), numbers) };
  } catch (error) {
    if (error instanceof JsonSyntaxError) return { undecided: `no strict JSON: ${error.message}` };
    throw error;
  }
}
