import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml';
import type { Path } from './path.ts';

export interface Position {
  readonly line: number;
  readonly column: number;
}

interface TextProblem {
  readonly path: Path;
  readonly message: string;
  readonly hint: string;
  readonly position: Position | null;
}

export type YamlText =
  /** Not YAML: nothing more can be said about it. */
  | { readonly kind: 'unreadable'; readonly problems: readonly TextProblem[] }
  | {
      readonly kind: 'document';
      /** Plain JSON. */
      readonly document: unknown;
      /** Keys written twice and numbers that would lose digits. */
      readonly problems: readonly TextProblem[];
      /** Where a key or list item stands; of what is missing, where the nearest thing around it stands. */
      position(path: Path): Position | null;
    };

/** Reads one YAML 1.2 document, with anchors and `<<` merge keys. Excerpts of the text never reach a message. */
export function readYaml(text: string): YamlText {
  const lines = new LineCounter();
  const parsed = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    merge: true,
    uniqueKeys: false,
  });
  const positionOf = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  // Only the first: those that follow are mostly its echoes. Quoted pieces of the text are cut off.
  const [error] = parsed.errors;
  if (error !== undefined) {
    const message = `is not valid YAML: ${error.message.replace(/:? ["'`][\s\S]*$/, '')}`;
    const hint =
      'check indentation, quotes and brackets here and above; a text that holds { or : needs quotes';
    return {
      kind: 'unreadable',
      problems: [{ path: [], message, hint, position: positionOf(error.pos[0]) }],
    };
  }
  const problems: TextProblem[] = [];
  visit(parsed, {
    Map: (_, map, ancestors) => {
      const path = pathOf(ancestors, map);
      const seen = new Map<string, Position>();
      for (const pair of map.items) {
        if (!isScalar(pair.key)) continue;
        const key = String(pair.key.value);
        const position = positionOf(pair.key.range?.[0] ?? 0);
        const first = seen.get(key);
        if (first === undefined || key === '<<') seen.set(key, position);
        else {
          const hint = `remove one; the first is in line ${first.line}`;
          problems.push({ path: [...path, key], message: 'is written twice', hint, position });
        }
      }
    },
    Scalar: (_, scalar, ancestors) => {
      if (typeof scalar.value !== 'number' || !/^[-+]?\d+$/.test(scalar.source ?? '')) return;
      if (Number.isSafeInteger(scalar.value)) return;
      problems.push({
        path: pathOf(ancestors, scalar),
        message: 'is a number with more digits than can be kept',
        hint: 'put it in quotes',
        position: positionOf(scalar.range?.[0] ?? 0),
      });
    },
  });
  try {
    const document: unknown = parsed.toJS();
    const top = parsed.contents;
    return { kind: 'document', document, problems, position: (path) => locate(top, path, positionOf) };
  } catch (error) {
    // An alias without its anchor, or aliases that unfold to an absurd size.
    if (!(error instanceof ReferenceError)) throw error;
    const hint = 'define the &anchor before the *alias';
    return { kind: 'unreadable', problems: [{ path: [], message: error.message, hint, position: null }] };
  }
}

function locate(top: Node | null, path: Path, positionOf: (offset: number) => Position): Position | null {
  let node: unknown = top;
  let offset = top?.range?.[0];
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(part));
      if (pair === undefined) break;
      if (isScalar(pair.key)) offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node) && typeof part === 'number') {
      const item = node.items[part] as Node | undefined;
      if (item === undefined) break;
      offset = item.range?.[0] ?? offset;
      node = item;
    } else break;
  }
  return offset === undefined ? null : positionOf(offset);
}

function pathOf(ancestors: readonly unknown[], node: unknown): (string | number)[] {
  const chain = [...ancestors, node];
  const path: (string | number)[] = [];
  for (const [at, parent] of chain.entries()) {
    const inner = chain[at + 1];
    if (isSeq(parent)) path.push(parent.items.indexOf(inner));
    if (isMap(parent)) {
      const pair = parent.items.find((item) => item === inner);
      if (pair !== undefined && isScalar(pair.key)) path.push(String(pair.key.value));
    }
  }
  return path;
}
