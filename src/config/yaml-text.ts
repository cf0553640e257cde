import {
  type Alias,
  type Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from 'yaml';
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

/** What the parser says, where its words or the general advice would not help. */
const EXPLAINED: readonly (readonly [RegExp, message: string, hint: string])[] = [
  [/Tabs are not allowed/, 'is indented with a tab', 'indent with spaces'],
  [/multiple documents/, 'holds more than one document', 'remove the line --- and what follows it'],
  [/call stack/, 'is nested too deeply', 'a config needs a dozen levels at most'],
];
const ADVICE = 'check indentation, quotes and brackets here and above; a text that holds { or : needs quotes';

/** Reads one YAML 1.2 document, with anchors and `<<` merge keys. Excerpts of the text never reach a message. */
export function readYaml(text: string): YamlText {
  if (text.includes('\0')) return unreadable('is no text file', 'give the path of a YAML file');
  const lines = new LineCounter();
  const parsed = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    merge: true,
    uniqueKeys: false,
    // Else the parser prints warnings of its own to stderr.
    logLevel: 'error',
  });
  const positionOf = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  // Only the first: those that follow are mostly its echoes. Quoted pieces of the text are cut off.
  const [error] = parsed.errors;
  if (error !== undefined) {
    const explained = EXPLAINED.find(([pattern]) => pattern.test(error.message));
    const message = explained?.[1] ?? `is not valid YAML: ${error.message.replace(/:? ["'`][\s\S]*$/, '')}`;
    const hint = explained?.[2] ?? ADVICE;
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
        hint: 'write a smaller number, or put it in quotes where a text is meant',
        position: positionOf(scalar.range?.[0] ?? 0),
      });
    },
  });
  const dangling = danglingAlias(parsed);
  if (dangling !== undefined) {
    const position = dangling.range ? positionOf(dangling.range[0]) : null;
    return unreadable(
      `refers to *${dangling.source}, and there is no &${dangling.source} before it`,
      'define the &anchor first',
      position,
    );
  }
  try {
    const document: unknown = parsed.toJS();
    if (holdsItself(document))
      return unreadable('has an *alias inside its own &anchor', 'write the inner part out');
    const top = parsed.contents;
    return { kind: 'document', document, problems, position: (path) => locate(top, path, positionOf) };
  } catch (error) {
    // Aliases that unfold to an absurd size.
    if (!(error instanceof ReferenceError)) throw error;
    return unreadable('has aliases that unfold to more than can be meant', 'write the repeated parts out');
  }
}

function unreadable(message: string, hint: string, position: Position | null = null): YamlText {
  return { kind: 'unreadable', problems: [{ path: [], message, hint, position }] };
}

function danglingAlias(parsed: Document): Alias | undefined {
  let dangling: Alias | undefined;
  visit(parsed, {
    Alias: (_, alias) => {
      if (alias.resolve(parsed) !== undefined) return undefined;
      dangling = alias;
      return visit.BREAK;
    },
  });
  return dangling;
}

/** Aliases share what they refer to; one that stands inside it would never end. */
function holdsItself(node: unknown, around: ReadonlySet<unknown> = new Set()): boolean {
  if (node === null || typeof node !== 'object') return false;
  if (around.has(node)) return true;
  const inside = new Set(around).add(node);
  return Object.values(node).some((inner) => holdsItself(inner, inside));
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
