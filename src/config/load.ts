import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parseWithBestGuess } from './best-guess.ts';
import { checkActionSecrets } from './checks/action-secrets.ts';
import { ConfigError, type Problem } from './config-error.ts';
import { fitToSchema } from './fit.ts';
import { type Interpolated, interpolate, type Outside } from './interpolate.ts';
import { formatPath, isWithin, type Path, valueAt } from './path.ts';
import { createRedactor, isAddressPart, secretsIn } from './redact.ts';
import { type Config, configSchema } from './schema.ts';
import { formsAt } from './schema-walk.ts';
import { configSecrets, HIDDEN, withoutSecrets } from './secret-fields.ts';
import { validate } from './validate.ts';
import { type Position, readYaml, type YamlText } from './yaml-text.ts';

export interface LoadedConfig {
  readonly config: Config;
  /** Absolute path of the file. */
  readonly path: string;
  /** The directory of the file: relative paths in it (`${file:...}`, modules) start here. */
  readonly directory: string;
  /** SHA-256 of `document` with sorted keys: the same for the same configuration, whatever its secrets are. */
  readonly digest: string;
  /** The file as JSON, `${...}` as written and secrets that were written out replaced: fit to store. */
  readonly document: unknown;
  /** Texts that must not be shown, for `createRedactor`. */
  readonly secrets: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

interface Complaint {
  readonly path: Path;
  readonly message: string;
  readonly hint: string;
  readonly position?: Position | null;
}

/** Reads, interpolates and checks a config file. Throws `ConfigError` with every problem of the file. */
export async function loadConfig(path: string, env: Environment): Promise<LoadedConfig> {
  const file = resolve(path);
  const text = readYaml(await readText(path, file));
  if (text.kind === 'unreadable') throw configError(path, text.problems, () => null);
  if (text.document === null || text.document === undefined)
    throw configError(
      path,
      [{ path: [], message: 'is empty', hint: 'write one with: trueup init' }],
      () => null,
    );
  return accept(text, path, file, env);
}

/**
 * The configuration of a stored revision, with what its `${...}` stand for in this process's environment; relative
 * paths start where `file` is. Throws `ConfigError` as `loadConfig` does, also when a secret was written out in the
 * file it came from, since that is not stored.
 */
export function loadStored(document: unknown, file: string, env: Environment): LoadedConfig {
  if (JSON.stringify(document).includes(HIDDEN)) {
    const message = 'holds secrets that were written out, which are not stored';
    const hint = `restart this process with the file itself, and write secrets as \${env:NAME} or \${file:PATH}`;
    throw configError('the stored configuration', [{ path: [], message, hint }], () => null);
  }
  const text = { kind: 'document' as const, document, problems: [], position: () => null };
  return accept(text, 'the stored configuration', file, env);
}

function accept(
  text: Extract<YamlText, { kind: 'document' }>,
  shownPath: string,
  file: string,
  env: Environment,
): LoadedConfig {
  const directory = dirname(file);
  const outcome = check(text, interpolate(text.document, outsideOf(env, directory)));
  if (outcome.config === undefined) throw configError(shownPath, outcome.complaints, text.position);
  const document = withoutSecrets(text.document, outcome.config);
  return {
    config: outcome.config,
    path: file,
    directory,
    digest: createHash('sha256').update(canonicalJson(document)).digest('hex'),
    document,
    secrets: [...new Set([...outcome.secrets, ...configSecrets(outcome.config), ...environmentSecrets(env)])],
  };
}

/** Store and queue have addresses of their own where the file gives none. */
function environmentSecrets(env: Environment): readonly string[] {
  return [env['DATABASE_URL'], env['QUEUE_URL']].flatMap((address) =>
    address !== undefined && URL.canParse(address) ? secretsIn(address) : [],
  );
}

function check(
  text: Extract<YamlText, { kind: 'document' }>,
  outside: Interpolated,
): { config: Config; secrets: readonly string[] } | { config: undefined; complaints: readonly Complaint[] } {
  const places = outside.interpolated.map((one) => one.path);
  const document = fitToSchema(configSchema, outside.document, places);
  const guess = parseWithBestGuess(configSchema, document);
  const unresolved = outside.problems.map((problem) => problem.path);
  const broken = [...guess.broken, ...unresolved];
  const show = (path: Path, predicate: string): string =>
    `${shown(document, outside, path)} ${predicate}`.trimStart();

  const shape = guess.problems
    .filter((problem) => !unresolved.some((path) => isWithin(problem.path, path)))
    .map(({ path, predicate, hint, showsValue }) => ({
      path,
      message: showsValue ? show(path, predicate) : predicate,
      hint: places.some((place) => formatPath(place) === formatPath(path)) ? withoutGuess(hint) : hint,
    }));
  const secrets = guess.config === undefined ? [] : configSecrets(guess.config);
  const misplaced = checkActionSecrets(document, outside.interpolated, secrets).map(
    ({ path, predicate, hint }) => ({ path, message: predicate, hint }),
  );
  const across = (guess.config === undefined ? [] : validate(guess.config, document))
    .filter((problem) => !broken.some((path) => isWithin(problem.path, path)))
    .filter(
      ({ reads = [] }) =>
        !reads.some((read) => broken.some((path) => isWithin(read, path) || isWithin(path, read))),
    )
    .map(({ path, predicate, hint, showsValue }) => ({
      path,
      message: showsValue === true ? show(path, predicate) : predicate,
      hint,
    }));
  const values = outside.values.map((value) => value.text);
  // The last net: whatever came from outside stays outside, also where another field happens to repeat it.
  const redact = createRedactor(values);
  const complaints: Complaint[] = [
    ...text.problems,
    // What may not stand there need not be set either.
    ...outside.problems.filter(({ path }) => !misplaced.some((one) => isWithin(one.path, path))),
    ...shape.map((one) => ({ ...one, message: redact(one.message) })),
    ...[...misplaced, ...across].map((one) => ({
      ...one,
      message: redact(one.message),
      hint: redact(one.hint),
    })),
  ];
  if (complaints.length > 0 || guess.config === undefined) return { config: undefined, complaints };
  const hidden = outside.values.flatMap(({ path, text }) => {
    const whole = valueAt(document, path);
    return typeof whole === 'string' && isAddressPart(whole, text) ? [] : secretsIn(text);
  });
  return { config: guess.config, secrets: hidden };
}

/** A value as a message may show it: what came from outside by its place, a secret or a group not at all. */
function shown(document: unknown, outside: Interpolated, path: Path): string {
  const from = outside.interpolated.find((one) => formatPath(one.path) === formatPath(path));
  if (from !== undefined) return `the value of ${from.written}`;
  if (formsAt(configSchema, document, path).some((form) => form.secret)) return 'the value';
  const value = valueAt(document, path);
  if (value === undefined || (value !== null && typeof value === 'object')) return '';
  const text = typeof value === 'number' ? String(value) : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}…"` : text;
}

/** A near word would tell what the value from outside looks like. */
function withoutGuess(hint: string): string {
  return hint.replace(/^did you mean "[^"]*"\? ?/, '');
}

function configError(
  path: string,
  complaints: readonly Complaint[],
  position: (path: Path) => Position | null,
): ConfigError {
  const problems: Problem[] = complaints.map((complaint) => {
    const at = complaint.position ?? position(complaint.path);
    const { message, hint } = complaint;
    return {
      path: formatPath(complaint.path),
      message,
      hint,
      line: at?.line ?? null,
      column: at?.column ?? null,
    };
  });
  return new ConfigError(
    path,
    problems.sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0)),
  );
}

async function readText(path: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined) throw error;
    const [message, hint] =
      code === 'ENOENT'
        ? ['does not exist', 'write one with: trueup init, or name another with --config']
        : [`cannot be read (${code})`, 'check that it is a file and that this user may read it'];
    throw configError(path, [{ path: [], message, hint }], () => null);
  }
}

function outsideOf(env: Environment, directory: string): Outside {
  return {
    env: (name) => env[name],
    file: (path) => {
      try {
        return { text: readFileSync(resolve(directory, path), 'utf8') };
      } catch (error) {
        const code = codeOf(error);
        if (code === undefined) throw error;
        return { unreadable: code };
      }
    },
  };
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (inner === null || typeof inner !== 'object' || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
