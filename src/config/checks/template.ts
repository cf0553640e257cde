import type { CrossProblem } from '../cross-problem.ts';
import { suggest } from '../nearest.ts';
import type { Path } from '../path.ts';
import type { Reconciliation, Repair } from '../schema.ts';
import { type Placeholder, placeholdersIn } from './placeholders.ts';
import { mappedFields } from './side.ts';

type Kind = 'missing' | 'mismatched' | 'extra';

const IDENTITY = ['reconciliation', 'businessKey', 'operation', 'businessDate'];
/** What an action may send besides fields and the key. */
const SENT = ['idempotencyKey', 'reconciliation', 'operation', 'businessDate', 'traceId'];
const ABSENT: Readonly<Record<Kind, 'source' | 'downstream' | undefined>> = {
  missing: 'downstream',
  extra: 'source',
  mismatched: undefined,
};

/** Rule 6.1: a key is the same whenever and however often the same repair is planned. */
export function checkIdempotency(
  path: Path,
  at: Path,
  kind: Kind,
  reconciliation: Reconciliation,
  repair: Repair,
): CrossProblem[] {
  const { from, template } = repair.idempotency;
  const here = [...at, 'idempotency', 'template'];
  const used = placeholdersIn(template, here);
  const problems: CrossProblem[] = used.flatMap((placeholder) => {
    if (/^(source|downstream|key)\./.test(placeholder.name))
      return checkField(path, kind, reconciliation, placeholder);
    return IDENTITY.includes(placeholder.name) ? [] : [refusedPlaceholder(placeholder)];
  });
  if (!used.some(({ name }) => name === 'businessKey' || name.includes('.')))
    problems.push({
      path: here,
      predicate: 'is the same for every record',
      hint: 'put {businessKey} into it',
    });
  if (!/^[\x21-\x7e]+$/.test(template))
    problems.push({ path: here, predicate: 'is not plain ASCII', hint: 'leave spaces and accents out' });
  // Else ("1", "23") and ("12", "3") would have the same key.
  if (/\}[A-Za-z0-9%~{]/.test(template))
    problems.push({
      path: here,
      predicate: 'has a placeholder that runs into what follows',
      hint: 'put a mark such as : between them',
    });
  if (from !== undefined)
    problems.push(...checkSourceField(path, [...at, 'idempotency', 'from'], from, reconciliation));
  if (from !== undefined && kind === 'extra')
    problems.push({
      path: [...at, 'idempotency', 'from'],
      predicate: 'names a source field, and an extra record has no source',
      hint: 'use a template',
    });
  return problems;
}

function refusedPlaceholder({ name, path }: Placeholder): CrossProblem {
  const why = /attempt|try|retry|revision/i.test(name)
    ? 'changes with each attempt'
    : /now|time|clock|stamp/i.test(name)
      ? 'changes with the time of day'
      : /rand|uuid|nonce|nano/i.test(name)
        ? 'is random'
        : /(^|[a-z])id$|^(run|diff|job)/i.test(name)
          ? 'is an internal id'
          : 'is not known here';
  const hint = `rule 6.1 allows ${IDENTITY.map((word) => `{${word}}`).join(', ')}, {key.NAME}, {source.FIELD} and {downstream.FIELD}`;
  return { path, predicate: `uses {${name}}, which ${why}`, hint };
}

/** Fields that go into a request, statement or module are mapped ones. */
export function checkActionTemplates(
  path: Path,
  at: Path,
  kind: Kind,
  reconciliation: Reconciliation,
  repair: Repair,
): CrossProblem[] {
  const here = [...at, 'action'];
  const { action } = repair;
  const templates =
    action.type === 'http'
      ? { path: action.path, query: action.query, headers: action.headers, body: action.body }
      : action.type === 'sql'
        ? { bind: action.bind }
        : { input: action.input };
  const problems = placeholdersIn(templates, here).flatMap((placeholder) => {
    const { name, path: at } = placeholder;
    if (/^(source|downstream|key)\./.test(name)) return checkField(path, kind, reconciliation, placeholder);
    if (SENT.includes(name) || (name === 'key' && reconciliation.key.length === 1)) return [];
    const hint = `known are {${[...SENT, 'key.NAME', 'source.FIELD', 'downstream.FIELD'].join('}, {')}}`;
    return [
      { path: at, predicate: `uses {${name}}, which is not known here`, hint, reads: [[...path, 'key']] },
    ];
  });
  if (action.type === 'sql') problems.push(...checkBind(here, action.statement, action.bind));
  return problems;
}

function checkField(
  path: Path,
  kind: Kind,
  reconciliation: Reconciliation,
  placeholder: Placeholder,
): CrossProblem[] {
  const dot = placeholder.name.indexOf('.');
  const owner = placeholder.name.slice(0, dot);
  const field = placeholder.name.slice(dot + 1);
  const problem = (predicate: string, hint: string, reads: readonly Path[]): CrossProblem[] => [
    { path: placeholder.path, predicate: `uses {${placeholder.name}}, ${predicate}`, hint, reads },
  ];
  if (owner === 'key') {
    if (reconciliation.key.includes(field)) return [];
    return problem('which is no part of the key', suggest(field, reconciliation.key, 'parts of the key'), [
      [...path, 'key'],
    ]);
  }
  if (owner !== 'source' && owner !== 'downstream') return [];
  if (ABSENT[kind] === owner)
    return problem(
      `and there is no ${owner} record of ${kind === 'extra' ? 'an extra' : 'a missing'} one`,
      `use {${owner === 'source' ? 'downstream' : 'source'}.${field}} or {key.NAME}`,
      [],
    );
  const mapped = readFields(reconciliation, owner);
  if (mapped.includes(field)) return [];
  return problem(`which is no field of the ${owner}`, suggest(field, mapped, `fields of the ${owner}`), [
    [...path, owner, 'fields'],
    [...path, owner, 'type'],
  ]);
}

/** Compared fields are read whether they are mapped or are parts of the key. */
function readFields(reconciliation: Reconciliation, side: 'source' | 'downstream'): readonly string[] {
  const { compare } = reconciliation;
  return [...new Set([...mappedFields(reconciliation[side], compare), ...Object.keys(compare)])];
}

export function checkSourceField(
  path: Path,
  at: Path,
  field: string,
  reconciliation: Reconciliation,
): CrossProblem[] {
  const mapped = readFields(reconciliation, 'source');
  if (mapped.includes(field)) return [];
  return [
    {
      path: at,
      predicate: 'is no field of the source',
      hint: suggest(field, mapped, 'fields of the source'),
      showsValue: true,
      reads: [
        [...path, 'source', 'fields'],
        [...path, 'source', 'type'],
      ],
    },
  ];
}

/** `:name` outside quotes, comments and casts. The statement itself is read exactly when it is first used. */
function checkBind(at: Path, statement: string, bind: Readonly<Record<string, string>>): CrossProblem[] {
  const bare = statement.replace(
    /'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\/\*[\s\S]*?\*\/|\$(\w*)\$[\s\S]*?\$\1\$|::/g,
    ' ',
  );
  const used = new Set([...bare.matchAll(/(?<![\w\])$]):([A-Za-z_]\w*)/g)].map(([, name = '']) => name));
  const reads = [
    [...at, 'statement'],
    [...at, 'bind'],
  ];
  const unbound = [...used]
    .filter((name) => !Object.hasOwn(bind, name))
    .map((name) => ({
      path: [...at, 'statement'],
      predicate: `uses :${name}, which bind does not give`,
      hint: `add bind.${name}, such as "{source.${name}}"`,
      reads,
    }));
  const unused = Object.keys(bind)
    .filter((name) => !used.has(name))
    .map((name) => ({
      path: [...at, 'bind', name],
      predicate: 'is not used by the statement',
      hint: suggest(
        name,
        [...used].filter((word) => !Object.hasOwn(bind, word)),
        'unbound names',
      ),
      reads,
    }));
  return [...unbound, ...unused];
}
