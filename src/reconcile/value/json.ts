import { canonicalDecimal } from './decimal.ts';
import { type JsonNode, JsonSyntaxError, parseJson } from './lossless-json.ts';

/** One text per JSON value: members sorted by name, no white space, numbers exact (`1e2`, `100` and `100.0` agree). */
export function canonicalJson(node: JsonNode): string {
  switch (node.kind) {
    case 'null':
      return 'null';
    case 'boolean':
      return String(node.value);
    case 'number':
      return canonicalDecimal(node.text) ?? node.text;
    case 'string':
      return JSON.stringify(node.value);
    case 'array':
      return `[${node.items.map(canonicalJson).join(',')}]`;
    case 'object': {
      const names = [...node.members].sort(([a], [b]) => (a < b ? -1 : 1));
      return `{${names.map(([name, value]) => `${JSON.stringify(name)}:${canonicalJson(value)}`).join(',')}}`;
    }
  }
}

/** The same from a JSON text; `undefined` when it is no strict JSON (see `parseJson`). */
export function canonicalJsonText(text: string): string | undefined {
  try {
    return canonicalJson(parseJson(text));
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined;
    throw error;
  }
}
