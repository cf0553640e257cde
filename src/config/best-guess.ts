import { z } from 'zod';
import { type SchemaProblem, schemaProblems } from './issues.ts';
import { formatPath, isWithin, type Path, valueAt } from './path.ts';
import { formsAt } from './schema-walk.ts';

export interface Guess<Output> {
  /** Everything the schema refuses. */
  readonly problems: readonly SchemaProblem[];
  /** The config as it was probably meant; `undefined` when no guess parses. */
  readonly config: Output | undefined;
  /** Places whose content was not understood: a stand-in is there, and nothing may be concluded from it. */
  readonly broken: readonly Path[];
}

/** Each round corrects one level; deeper mistakes come to light in the next. */
const MAX_ROUNDS = 12;

/** Values that fit most places: only there so that the rest of the document can be checked. */
const STAND_INS: readonly unknown[] = [
  'x',
  '/x',
  'x:1',
  '1s',
  '0',
  1,
  true,
  ['x'],
  {},
  { type: 'postgres', url: 'x' },
  { type: 'sql', statement: 'x' },
  { path: '/x' },
];

/**
 * Parses a document, and when that fails goes on with what was probably meant (near keys and words, stand-ins for the
 * rest), so that all mistakes of a file are told at once and not one round at a time.
 */
export function parseWithBestGuess<Output>(schema: z.ZodType<Output>, document: unknown): Guess<Output> {
  const problems: SchemaProblem[] = [];
  const broken: Path[] = [];
  let current = document;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const result = schema.safeParse(current);
    if (result.success) return { problems, config: result.data, broken };
    const found = schemaProblems(schema, current, result.error.issues);
    // A mistyped key before the missing one that it was meant to be.
    const inOrder = [...found].sort(
      (a, b) => Number(b.correction.kind === 'rename') - Number(a.correction.kind === 'rename'),
    );
    for (const problem of inOrder) {
      if (!isEcho(problem, problems, broken)) problems.push(problem);
      const corrected = correct(schema, current, giveUp(problem, broken));
      current = corrected.document;
      if (!corrected.understood) broken.push(corrected.path);
    }
  }
  return { problems, config: undefined, broken };
}

/** Said already, or about a place whose content is not what was written: a list is empty because its item was taken out. */
function isEcho(problem: SchemaProblem, told: readonly SchemaProblem[], broken: readonly Path[]): boolean {
  const about = formatPath(problem.path);
  const { predicate } = problem;
  return (
    (predicate === 'is missing' && told.some((one) => isRenamedTo(one, problem.path))) ||
    broken.some((path) => isWithin(problem.path, path) || isWithin(path, problem.path)) ||
    told.some((one) => formatPath(one.path) === about && one.predicate === predicate)
  );
}

function isRenamedTo({ path, correction }: SchemaProblem, missing: Path): boolean {
  return (
    correction.kind === 'rename' && formatPath([...path.slice(0, -1), correction.to]) === formatPath(missing)
  );
}

/** Where an earlier correction did not help, all of what holds the mistake goes. */
function giveUp(problem: SchemaProblem, broken: readonly Path[]): SchemaProblem {
  let path = problem.path;
  while (
    path.length > 0 &&
    broken.some((earlier) => isWithin(earlier, path) && earlier.length === path.length)
  )
    path = path.slice(0, -1);
  return path.length === problem.path.length ? problem : { ...problem, path, correction: { kind: 'none' } };
}

function correct(
  schema: z.core.$ZodType,
  document: unknown,
  problem: SchemaProblem,
): { document: unknown; path: Path; understood: boolean } {
  const { path, correction } = problem;
  if (correction.kind === 'replace')
    return { document: withValue(document, path, correction.value), path, understood: true };
  if (correction.kind === 'rename') {
    const moved = withValue(document, path, undefined);
    const target = [...path.slice(0, -1), correction.to];
    return { document: withValue(moved, target, valueAt(document, path)), path, understood: true };
  }
  // Left out, the default holds; a required value needs something in its place.
  const without = withValue(document, path, undefined);
  const spot = formsAt(schema, without, path);
  // An item taken out of a list would move those behind it to other places.
  const item = typeof path.at(-1) === 'number';
  const required = item || (spot.length > 0 && isRequired(schema, without, path));
  if (!required) return { document: without, path, understood: false };
  const standIn = STAND_INS.find((value) => spot.some((form) => z.safeParse(form.schema, value).success));
  return { document: withValue(document, path, standIn), path, understood: false };
}

function isRequired(schema: z.core.$ZodType, without: unknown, path: Path): boolean {
  const result = z.safeParse(schema, without);
  if (result.success) return false;
  return schemaProblems(schema, without, result.error.issues).some(
    (problem) => problem.predicate === 'is missing' && isWithin(problem.path, path),
  );
}

/** A copy with another value at a path; `undefined` removes it. A path that leads nowhere changes nothing. */
function withValue(document: unknown, path: Path, value: unknown): unknown {
  const [part, ...rest] = path;
  if (part === undefined) return value;
  if (document === null || typeof document !== 'object') return document;
  if (Array.isArray(document)) {
    const copy = [...document];
    copy[Number(part)] = withValue(copy[Number(part)], rest, value);
    return copy;
  }
  const next = rest.length === 0 ? value : withValue(valueAt(document, [part]), rest, value);
  const others = Object.entries(document).filter(([key]) => key !== part);
  return Object.fromEntries(next === undefined ? others : [...others, [part, next]]);
}
