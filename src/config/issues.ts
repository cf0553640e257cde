import { z } from 'zod';
import { nearest, suggest } from './nearest.ts';
import { type Path, valueAt } from './path.ts';
import { type Form, formsAt, knownKeys } from './schema-walk.ts';

/** Something the schema refuses, and the change that would let the rest be checked as it was meant. */
export interface SchemaProblem {
  readonly path: Path;
  /** What is said about the value at `path`: `is no duration`. */
  readonly predicate: string;
  readonly hint: string;
  /** False where the value itself says nothing: unknown and missing keys. */
  readonly showsValue: boolean;
  readonly correction:
    | { readonly kind: 'rename'; readonly to: string }
    | { readonly kind: 'replace'; readonly value: unknown }
    | { readonly kind: 'none' };
}

type Issue = z.core.$ZodIssue;

const NONE = { kind: 'none' } as const;

/** The issues of a failed parse in the words of this program, without the values. */
export function schemaProblems(
  root: z.core.$ZodType,
  document: unknown,
  issues: readonly Issue[],
): readonly SchemaProblem[] {
  const from = (issue: Issue, prefix: Path): readonly SchemaProblem[] => {
    const path = [...prefix, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))];
    const forms = formsAt(root, document, path);
    const value = valueAt(document, path);
    switch (issue.code) {
      case 'unrecognized_keys':
        return issue.keys.map((key) => unknownKey(path, key, knownKeys(forms), value));
      case 'invalid_key':
        return issue.issues.map((inner) => invalidName(path, inner.message));
      case 'invalid_union':
        return union(issue, path, forms, value, from);
      case 'invalid_value':
        return [wrongChoice(path, value, issue.values.map(String), forms)];
      case 'invalid_type':
        return [value === undefined ? missing(path, forms) : wrongType(path, value, [issue.expected], forms)];
      case 'too_small':
      case 'too_big':
        return [outOfRange(issue, path)];
      default:
        return [said(path, issue.message)];
    }
  };
  return issues.flatMap((issue) => from(issue, []));
}

/** A schema message is a predicate and, after `; `, a hint. */
function said(path: Path, message: string): SchemaProblem {
  const [predicate = message, ...hint] = message.split('; ');
  return {
    path,
    predicate,
    hint: hint.join('; ') || 'see docs/reference/config.md',
    showsValue: true,
    correction: NONE,
  };
}

/** Names are written by a person in the file, so a near one can be proposed. */
function invalidName(path: Path, message: string): SchemaProblem {
  const problem = said(path, message);
  const near = String(path.at(-1) ?? '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]+/g, '-')
    .replace(/^[^a-z]+|-+$/g, '')
    .slice(0, 63);
  const hint = near === '' ? problem.hint : `did you mean "${near}"? ${problem.hint}`;
  return { ...problem, hint, showsValue: false };
}

function unknownKey(path: Path, key: string, known: readonly string[], object: unknown): SchemaProblem {
  const free = known.filter((name) => valueAt(object, [name]) === undefined);
  const near = nearest(key, free);
  return {
    path: [...path, key],
    predicate: 'is no known key',
    hint: suggest(key, near === undefined ? known : free, 'known keys'),
    showsValue: false,
    correction: near === undefined ? NONE : { kind: 'rename', to: near },
  };
}

function missing(
  path: Path,
  forms: readonly Form[],
  allowed: readonly string[] = choices(forms),
): SchemaProblem {
  const description = forms.find((form) => form.description !== undefined)?.description;
  const hint =
    allowed.length > 0
      ? allowed.length === 1
        ? `add ${path.at(-1)}: ${allowed[0]}`
        : `add ${path.at(-1)}: one of ${allowed.join(', ')}`
      : `add ${path.at(-1)}: ${description ?? expected(forms)}`;
  return { path, predicate: 'is missing', hint, showsValue: false, correction: NONE };
}

function wrongChoice(
  path: Path,
  value: unknown,
  allowed: readonly string[],
  forms: readonly Form[],
): SchemaProblem {
  if (value === undefined) return missing(path, forms, allowed);
  const meant = unquoted(value, forms);
  if (meant !== undefined) return quotedForNothing(path, meant);
  const near = typeof value === 'string' ? nearest(value, allowed) : undefined;
  return {
    path,
    predicate: 'is not allowed here',
    hint: `${near === undefined ? '' : `did you mean "${near}"? `}allowed: ${allowed.join(', ')}`,
    showsValue: true,
    correction: near === undefined ? NONE : { kind: 'replace', value: near },
  };
}

/** The number or boolean that a quoted text would be without its quotes, where one may stand. */
function unquoted(value: unknown, forms: readonly Form[]): number | boolean | undefined {
  if (typeof value !== 'string') return undefined;
  const candidates = [
    ...(/^-?\d+(\.\d+)?$/.test(value) ? [Number(value)] : []),
    ...(value === 'true' || value === 'false' ? [value === 'true'] : []),
  ];
  return candidates.find((candidate) => forms.some((form) => z.safeParse(form.schema, candidate).success));
}

function quotedForNothing(path: Path, meant: number | boolean): SchemaProblem {
  const predicate = `is a text, not ${typeof meant === 'number' ? 'a number' : 'true or false'}`;
  const correction = { kind: 'replace', value: meant } as const;
  return { path, predicate, hint: 'write it without quotes', showsValue: true, correction };
}

/** How a value of this type is written, for someone who wrote another. */
const WRITTEN: Readonly<Record<string, string>> = {
  array: 'a list, such as [a, b]',
  object: 'keys below it, each on a line of its own and indented',
  record: 'names below it, each on a line of its own and indented',
};

function wrongType(
  path: Path,
  value: unknown,
  types: readonly string[],
  forms: readonly Form[],
): SchemaProblem {
  const meant = unquoted(value, forms);
  if (meant !== undefined) return quotedForNothing(path, meant);
  const isDuration = forms.some(({ description }) => description?.includes('(a duration:') === true);
  if (isDuration && typeof value === 'number')
    return {
      path,
      predicate: 'has no unit',
      hint: `write one, such as ${value}s or ${value}m`,
      showsValue: true,
      correction: NONE,
    };
  const quoted = types.includes('string') && (typeof value === 'number' || typeof value === 'boolean');
  const wanted = types.map(typeWord).join(' or ');
  const write = path.length === 0 ? 'begin with version: 1, or write a file with: trueup init' : undefined;
  if (value === null)
    return { path, predicate: 'is empty', hint: `write ${wanted}`, showsValue: false, correction: NONE };
  return {
    path,
    predicate: `is ${typeWord(kindOf(value, types))}, not ${wanted}`,
    hint: quoted
      ? 'put it in quotes'
      : (write ?? `write ${types.map((type) => WRITTEN[type] ?? typeWord(type)).join(', or ')}`),
    showsValue: typeof value !== 'object',
    correction: NONE,
  };
}

function outOfRange(issue: Extract<Issue, { code: 'too_small' | 'too_big' }>, path: Path): SchemaProblem {
  if (!/^(Too small|Too big)/.test(issue.message)) return said(path, issue.message);
  const small = issue.code === 'too_small';
  const bound = small ? issue.minimum : issue.maximum;
  const exclusive = issue.inclusive === false;
  if (issue.origin === 'string' || issue.origin === 'array') {
    const hint = issue.origin === 'array' ? `list at least ${bound}` : 'write it, or leave the key out';
    return { path, predicate: 'is empty', hint, showsValue: false, correction: NONE };
  }
  const words = small ? (exclusive ? 'more than' : 'at least') : exclusive ? 'less than' : 'at most';
  return {
    path,
    predicate: `is too ${small ? 'small' : 'big'}`,
    hint: `write a number of ${words} ${bound}`,
    showsValue: true,
    correction: NONE,
  };
}

/**
 * Of the forms that a value may take, the one that was probably meant: the one whose own shape fits and that
 * complains least. When no shape fits, the allowed values and types of all are listed.
 */
function union(
  issue: Extract<Issue, { code: 'invalid_union' }>,
  path: Path,
  forms: readonly Form[],
  value: unknown,
  from: (issue: Issue, prefix: Path) => readonly SchemaProblem[],
): readonly SchemaProblem[] {
  if ('options' in issue && issue.options !== undefined)
    return [wrongChoice(path, value, issue.options.map(String), forms)];
  if (value === undefined) return [missing(path, forms)];
  const branches = issue.errors as readonly (readonly Issue[])[];
  const [meant] = branches
    .filter((branch) => branch.every((inner) => inner.path.length > 0 || !isShape(inner)))
    .sort((a, b) => a.length - b.length);
  if (meant !== undefined) return meant.flatMap((inner) => from(inner, path));
  const allowed = choices(forms);
  if (allowed.length === 0 || typeof value !== 'string') {
    const types = [...new Set(forms.map(typeOf))];
    return [
      wrongType(
        path,
        value,
        types.filter((type) => type !== 'enum' && type !== 'literal'),
        forms,
      ),
    ].map((problem) =>
      allowed.length === 0
        ? problem
        : { ...problem, hint: `${problem.hint}, or one of: ${allowed.join(', ')}` },
    );
  }
  const others = forms.filter((form) => !['enum', 'literal'].includes(form.schema._zod.def.type));
  const problem = wrongChoice(path, value, allowed, forms);
  if (unquoted(value, forms) !== undefined) return [problem];
  return [others.length === 0 ? problem : { ...problem, hint: `${problem.hint}, or ${expected(others)}` }];
}

function isShape(issue: Issue): boolean {
  return issue.code === 'invalid_type' || issue.code === 'invalid_value';
}

function choices(forms: readonly Form[]): string[] {
  return forms.flatMap((form) => {
    const { def } = form.schema._zod;
    if (def.type === 'enum') return Object.values(def.entries).map(String);
    return def.type === 'literal' ? def.values.map(String) : [];
  });
}

function expected(forms: readonly Form[]): string {
  return [...new Set(forms.map((form) => typeWord(typeOf(form))))].join(' or ');
}

/** `int` for whole numbers, which the schema calls numbers with a format. */
function typeOf({ schema }: Form): string {
  const { def } = schema._zod;
  return def.type === 'number' && 'format' in def && def.format === 'safeint' ? 'int' : def.type;
}

function kindOf(value: unknown, wanted: readonly string[]): string {
  if (value === null) return 'null';
  if (typeof value === 'number' && wanted.includes('int'))
    return Number.isFinite(value) ? 'fraction' : 'infinite';
  return Array.isArray(value) ? 'array' : typeof value;
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  fraction: 'a fraction',
  infinite: 'no finite number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a group of keys',
  record: 'a group of names',
  null: 'empty',
};

function typeWord(type: string): string {
  return TYPE_WORDS[type] ?? type;
}
