import { stringify } from 'yaml';
import { EXIT, TrueupError } from '../error.ts';
import type { ProposedSide } from './propose.ts';
import type { TypeName } from './schema.ts';

interface StarterSide extends ProposedSide {
  /** Name of the environment variable that holds the address. */
  readonly urlEnv: string;
}

export interface StarterAnswers {
  /** Name of the reconciliation. */
  readonly name: string;
  readonly key: readonly string[];
  readonly source: StarterSide;
  readonly downstream: StarterSide;
  readonly compare: Readonly<Record<string, TypeName>>;
  /** Five fields. Default: every 15 minutes. */
  readonly cron?: string;
  /** A duration. Default: 1h. */
  readonly lookback?: string;
  /** Written as comments over the reconciliation. */
  readonly warnings?: readonly string[];
}

/**
 * The YAML that `trueup init` writes: two PostgreSQL sides, checked and not repaired, addresses from the environment.
 * Throws `TrueupError` (`TRU_INIT_ANSWER`) when an environment variable has a name that no file can refer to.
 */
export function starterConfig(answers: StarterAnswers): string {
  const { name, source, downstream } = answers;
  const warnings = (answers.warnings ?? [])
    .map((warning) => `  # Look at this: ${oneLine(warning)}\n`)
    .join('');
  return `# Written by \`trueup init\`. Check it with \`trueup check\`, start it with \`trueup up\`.
version: 1

# Left out: an embedded PostgreSQL keeps the records and carries the jobs.
store:
  url: \${env:DATABASE_URL:-}
queue:
  url: \${env:QUEUE_URL:-}

reconciliations:
${warnings}  ${scalar(name)}:
    # Compares and reports. To repair, add targets and repair, then write compensate here.
    mode: check
    schedule: ${scalar(answers.cron ?? '*/15 * * * *')}
    window:
      lookback: ${scalar(answers.lookback ?? '1h')}
      # Records younger than this are left for the next run.
      settle: 2m
    source:
${sideYaml(source)}    downstream:
${sideYaml(downstream)}    key: ${list(answers.key)}
    # How each field compares; \`ignore\` reads a field without comparing it.
${indented(4, { compare: answers.compare })}
alerts:
  channels:
    # chat:
    #   type: slack
    #   url: \${env:SLACK_WEBHOOK_URL}
  # warning: [chat]
  # action: [chat]
`;
}

function sideYaml(side: StarterSide): string {
  const time = side.time === null ? '' : `      time: ${scalar(side.time)}\n`;
  return `      type: postgres
      # An account that can only read.
      url: \${env:${envName(side.urlEnv)}}
      table: ${scalar(side.table)}
${time}${indented(6, { key: mapping(side.key), fields: mapping(side.fields) })}`;
}

/** The short form where every name is its column. */
function mapping(names: Readonly<Record<string, string>>): unknown {
  const entries = Object.entries(names);
  const same = entries.length > 0 && entries.every(([name, column]) => name === column);
  return same ? entries.map(([name]) => name) : names;
}

function list(names: readonly string[]): string {
  return `[${names.map(scalar).join(', ')}]`;
}

/** A text that comes from a catalogue is data: `${` in it means nothing. */
function literal(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('${', () => '$${');
  if (Array.isArray(value)) return value.map(literal);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, literal(item)]));
}

function scalar(text: string): string {
  return stringify(literal(text), {
    collectionStyle: 'flow',
    lineWidth: 0,
    defaultStringType: isPlain(text) ? 'PLAIN' : 'QUOTE_DOUBLE',
  }).trimEnd();
}

function isPlain(text: string): boolean {
  return /^[A-Za-z_][\w.-]*$/.test(text);
}

function indented(spaces: number, value: object): string {
  const text = stringify(literal(value), { lineWidth: 0 });
  return text.replace(/^(?=.)/gm, ' '.repeat(spaces));
}

function envName(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return name;
  const hint = 'use letters, digits and _, not starting with a digit';
  throw new TrueupError('TRU_INIT_ANSWER', `"${name}" is no name of an environment variable`, {
    exit: EXIT.usage,
    hint,
  });
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}
