import type { CrossProblem } from '../cross-problem.ts';
import { isWithin, type Path, valueAt } from '../path.ts';
import { createRedactor } from '../redact.ts';

interface Written {
  readonly path: Path;
  /** The text of the file: `Bearer ${env:TOKEN}`. */
  readonly written: string;
}

/** Names of headers that carry credentials. */
const CREDENTIAL = /^(authorization|proxy-authorization|cookie)$|token|secret|password|api-?key/i;
/** A shorter password could be a word that an action uses for something else. */
const TELLING_LENGTH = 12;

/**
 * What stands in an action is stored with each compensation and each attempt, so no secret may: a secret belongs to the
 * target, whose own fields are put in at the send. Refuses `${env:...}` and `${file:...}` in actions, credentials
 * written out in their headers, and texts that repeat a secret of this config.
 */
export function checkActionSecrets(
  document: unknown,
  interpolated: readonly Written[],
  secrets: readonly string[],
): readonly CrossProblem[] {
  const actions = actionPaths(document);
  const actionOf = (path: Path) => actions.find((action) => isWithin(path, action));
  const fromOutside = interpolated.flatMap(({ path, written }) => {
    const action = actionOf(path);
    return action === undefined ? [] : problemOfInterpolated(document, action, path, written);
  });
  const reported = (path: Path) => fromOutside.some((one) => isWithin(one.path, path));
  const hides = createRedactor(secrets.filter((secret) => secret.length >= TELLING_LENGTH));
  const writtenOut = actions
    .flatMap((action) => textsIn(document, action).map((one) => ({ ...one, action })))
    .filter(({ path }) => !reported(path))
    .flatMap(({ action, path, text }): CrossProblem[] => {
      const isCredential = path.at(-2) === 'headers' && CREDENTIAL.test(String(path.at(-1)));
      const repeats = hides(text) !== text;
      if (!repeats && (!isCredential || /\{[^}]+\}/.test(text))) return [];
      return [
        {
          path,
          predicate: repeats
            ? 'repeats a secret of this config, and what stands in an action is stored'
            : 'is a credential, and what stands in an action is stored',
          hint: whereTo(document, action, path),
        },
      ];
    });
  return [...fromOutside, ...writtenOut];
}

function problemOfInterpolated(
  document: unknown,
  action: Path,
  path: Path,
  written: string,
): readonly CrossProblem[] {
  const refused = [...written.matchAll(/(\$?)\$\{(env|file):([^}]*)\}/g)].find(
    ([, escaped]) => escaped === '',
  );
  if (refused === undefined) return [];
  const [, , form = '', inner = ''] = refused;
  const plain = form === 'env' ? `\${plain:${inner}}` : `an environment variable and \${plain:NAME}`;
  return [
    {
      path,
      predicate: `may not hold \${${form}:${inner}}: what stands in an action is stored with every attempt`,
      hint: `${whereTo(document, action, path)}; a value that is no secret is written ${plain}`,
    },
  ];
}

/** The place from which the same secret reaches the call without being stored. */
function whereTo(document: unknown, action: Path, path: Path): string {
  const name = valueAt(document, [...action.slice(0, -1), 'target']);
  const target = `targets.${typeof name === 'string' ? name : '<name>'}`;
  const type = valueAt(document, [...action, 'type']);
  const part = path[action.length];
  if (type === 'module') return 'a secret belongs into the environment, where the module reads it itself';
  if (type === 'sql') return `a secret belongs into ${target}.url`;
  if (part === 'headers') return `a secret header belongs into ${target}.headers`;
  if (part === 'query')
    return `a secret parameter belongs into ${target}.url, as in https://host/?name=value`;
  return `a secret belongs into ${target}.headers or ${target}.url, or into a module action that reads it itself`;
}

/** Where the actions stand: `reconciliations.<name>.repair.<kind>[n].action`. */
function actionPaths(document: unknown): readonly Path[] {
  return entriesAt(document, ['reconciliations']).flatMap((reconciliation) =>
    entriesAt(document, [...reconciliation, 'repair'])
      .flatMap((kind) => (Array.isArray(valueAt(document, kind)) ? entriesAt(document, kind) : [kind]))
      .map((repair): Path => [...repair, 'action'])
      .filter((action) => valueAt(document, action) !== undefined),
  );
}

function textsIn(document: unknown, path: Path): readonly { path: Path; text: string }[] {
  const value = valueAt(document, path);
  if (typeof value === 'string') return [{ path, text: value }];
  return entriesAt(document, path).flatMap((inner) => textsIn(document, inner));
}

function entriesAt(document: unknown, path: Path): readonly Path[] {
  const value = valueAt(document, path);
  if (value === null || typeof value !== 'object') return [];
  if (Array.isArray(value)) return value.map((_, at) => [...path, at]);
  return Object.keys(value).map((key) => [...path, key]);
}
