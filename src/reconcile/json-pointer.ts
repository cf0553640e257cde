import type { JsonNode } from './value/lossless-json.ts';

/** A JSON pointer (RFC 6901) cut into its tokens: `/items/0/a~1b` is `['items', '0', 'a/b']`, `''` is the whole. */
export type JsonPointer = readonly string[];

/** Throws `TypeError` when the text is no JSON pointer: it must be empty or start with `/`, and `~` needs 0 or 1. */
export function parsePointer(text: string): JsonPointer {
  if (text === '') return [];
  if (!text.startsWith('/') || /~(?![01])/.test(text)) {
    throw new TypeError(`"${text}" is no JSON pointer; write /items/0/id, or "" for the whole document`);
  }
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The value the pointer names; `undefined` when the document has none there. */
export function pointTo(node: JsonNode, pointer: JsonPointer): JsonNode | undefined {
  let at: JsonNode | undefined = node;
  for (const token of pointer) {
    if (at === undefined) return undefined;
    at = step(at, token);
  }
  return at;
}

function step(node: JsonNode, token: string): JsonNode | undefined {
  if (node.kind === 'object') return node.members.get(token);
  if (node.kind === 'array' && /^(0|[1-9]\d*)$/.test(token)) return node.items[Number(token)];
  return undefined;
}
