import type { CrossProblem } from '../cross-problem.ts';
import { suggest } from '../nearest.ts';
import type { Path } from '../path.ts';
import type {
  Config,
  HttpSideConfig,
  MysqlSideConfig,
  PostgresSideConfig,
  Rule,
  SideConfig,
} from '../schema.ts';
import { checkAddress, HTTP, hasScheme, MYSQL, POSTGRES } from './address.ts';
import { placeholdersIn } from './placeholders.ts';

/** The fields that are read of a side: what it maps; of a database that maps none, what is compared. */
export function mappedFields(side: SideConfig, compare: Readonly<Record<string, Rule>>): readonly string[] {
  return side.fields === undefined ? Object.keys(compare) : namesOf(side.fields);
}

/** Without a time (and for HTTP a list) the records of a window cannot be found. */
export function canScan(side: SideConfig): boolean {
  return side.type === 'http' ? side.list !== undefined : side.time !== undefined;
}

export function checkSide(
  config: Config,
  path: Path,
  side: SideConfig,
  key: readonly string[],
): readonly CrossProblem[] {
  const own = side.type === 'http' ? checkHttp(config, path, side, key) : checkDatabase(path, side);
  return [...own, ...checkKey(path, side, key)];
}

function checkKey(path: Path, side: SideConfig, key: readonly string[]): CrossProblem[] {
  if (side.key === undefined) return [];
  const mapped = namesOf(side.key);
  const at = [...path, 'key'];
  const reads = [[...path.slice(0, 2), 'key']];
  const absent = key
    .filter((name) => !mapped.includes(name))
    .map((name) => ({
      path: at,
      predicate: `does not say what "${name}" is`,
      hint: `add ${name}; the key of the reconciliation is ${key.join(', ')}`,
      reads,
    }));
  const extra = mapped
    .filter((name) => !key.includes(name))
    .map((name) => ({
      path: [...at, ...(Array.isArray(side.key) ? [] : [name])],
      predicate: `names "${name}", which is no part of the key`,
      hint: suggest(name, key, 'parts of the key'),
      reads,
    }));
  return [...absent, ...extra];
}

function checkDatabase(path: Path, side: PostgresSideConfig | MysqlSideConfig): CrossProblem[] {
  const schemes = side.type === 'mysql' ? MYSQL : POSTGRES;
  const problems = checkAddress([...path, 'url'], side.url, schemes);
  const reads = [
    [...path, 'table'],
    [...path, 'query'],
  ];
  if (side.table === undefined && side.query === undefined)
    problems.push({
      path,
      predicate: 'reads nothing',
      hint: 'add table: the table or view with the records, or query: a SELECT',
      reads,
    });
  if (side.table !== undefined && side.query !== undefined)
    problems.push({ path, predicate: 'has both a table and a query', hint: 'keep one of them', reads });
  return problems;
}

function checkHttp(config: Config, path: Path, side: HttpSideConfig, key: readonly string[]): CrossProblem[] {
  return [...checkTarget(config, path, side), ...checkLookup(path, side, key), ...checkList(path, side)];
}

function checkTarget(config: Config, path: Path, side: HttpSideConfig): CrossProblem[] {
  const at = [...path, 'target'];
  const target = Object.hasOwn(config.targets, side.target) ? config.targets[side.target] : undefined;
  const reads = [['targets', side.target]];
  if (target === undefined)
    return [
      {
        path: at,
        predicate: 'is no target',
        hint: suggest(side.target, Object.keys(config.targets), 'targets'),
        showsValue: true,
        reads,
      },
    ];
  if (target.url !== undefined && hasScheme(target.url, HTTP)) return [];
  return [
    {
      path: at,
      predicate: 'has no http(s):// address',
      hint: `set targets.${side.target}.url`,
      showsValue: true,
      reads,
    },
  ];
}

function checkLookup(path: Path, side: HttpSideConfig, key: readonly string[]): CrossProblem[] {
  const { lookup } = side;
  const at = [...path, 'lookup'];
  const used = callPlaceholders(at, lookup).map((placeholder) => placeholder.name);
  const reads = [
    [...path.slice(0, 2), 'key'],
    [...at, 'batch'],
    [...at, 'path'],
    [...at, 'query'],
    [...at, 'body'],
  ];
  if (lookup.batch > 1 && !used.includes('keys'))
    return [
      {
        path: at,
        predicate: `asks for ${lookup.batch} keys in one call and does not hold {keys}`,
        hint: 'put {keys} into path, query or body, or set batch: 1',
        reads,
      },
    ];
  if (lookup.batch > 1) return [];
  const wanted = key.map((name) => `{key.${name}}`).join(' and ');
  const unknown = used.filter((name) => name.startsWith('key.') && !key.includes(name.slice('key.'.length)));
  const problems: CrossProblem[] = unknown.map((name) => ({
    path: at,
    predicate: `holds {${name}}, which is no part of the key`,
    hint: `use ${wanted}`,
    reads,
  }));
  const whole = used.includes('keys') || (key.length === 1 && used.includes('key'));
  const parts = key.every((name) => used.includes(name) || used.includes(`key.${name}`));
  if (unknown.length > 0 || whole || parts) return problems;
  const hint = `put ${key.length === 1 ? '{key}' : wanted} into path, query or body`;
  return [{ path: at, predicate: 'asks for one key and does not say where it goes', hint, reads }];
}

function checkList(path: Path, side: HttpSideConfig): CrossProblem[] {
  const { list } = side;
  if (list === undefined) return [];
  const at = [...path, 'list'];
  const used = callPlaceholders(at, list).map((placeholder) => placeholder.name);
  const reads = ['path', 'query', 'body', 'next', 'firstPage'].map((key) => [...at, key]);
  const problems: CrossProblem[] = ['from', 'to']
    .filter((name) => !used.includes(name))
    .map((name) => ({
      path: at,
      predicate: `does not hold {${name}}`,
      hint: 'put {from} and {to}, the window, into path, query or body',
      reads,
    }));
  const paging = (given: boolean, option: string, name: string): void => {
    if (given && !used.includes(name))
      problems.push({
        path: [...at, option],
        predicate: `needs {${name}}`,
        hint: `put {${name}} into path, query or body`,
        reads,
      });
    if (!given && used.includes(name))
      problems.push({
        path: at,
        predicate: `holds {${name}} and does not say how to page`,
        hint: `set ${option}`,
        reads,
      });
  };
  if (list.next !== undefined && list.firstPage !== undefined)
    problems.push({
      path: at,
      predicate: 'pages in two ways',
      hint: 'keep next (with {cursor}) or firstPage (with {page})',
      reads,
    });
  paging(list.next !== undefined, 'next', 'cursor');
  paging(list.firstPage !== undefined, 'firstPage', 'page');
  return problems;
}

function callPlaceholders(at: Path, call: { path: string; query: Record<string, string>; body?: unknown }) {
  return placeholdersIn({ path: call.path, query: call.query, body: call.body }, at);
}

function namesOf(mapping: readonly string[] | Readonly<Record<string, string>>): readonly string[] {
  return Array.isArray(mapping) ? mapping : Object.keys(mapping);
}
