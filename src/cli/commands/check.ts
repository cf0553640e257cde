import type { Command } from 'commander';
import { openPairs } from '../../app.ts';
import { EXIT, type ExitCode, TrueupError } from '../../error.ts';
import type { Pair } from '../../jobs/pair.ts';
import { isUsableKey } from '../../reconcile/key.ts';
import { choosePlan } from '../../reconcile/read-window.ts';
import { displayKey, keyText, type SideRecord } from '../../reconcile/record.ts';
import { type Side, type SideDescription, SideError } from '../../reconcile/side.ts';
import { type Format, printLine, say } from '../output.ts';
import { openSession } from '../session.ts';

const DESCRIBE_MS = 60_000;

type SideName = 'source' | 'downstream';

interface SideReport {
  readonly side: SideName;
  readonly description: SideDescription | null;
  readonly error: string | null;
  readonly exit: ExitCode;
}

export function registerCheck(program: Command): void {
  program
    .command('check [names...]')
    .description('checks the config, connects to each side and says how it would be read')
    .option('--offline', 'the config only; connect to nothing')
    .addHelpText('after', '\nExample:\n  trueup check payments --config config/trueup.yaml')
    .action(async (names: string[], options: { offline?: boolean }, command: Command) => {
      const { loaded, format } = await openSession(command, 'warn');
      say(`${loaded.path}: the config is valid`);
      if (options.offline) return;
      const pairs = openPairs(loaded, { take: async () => {} });
      try {
        let worst: ExitCode = EXIT.clean;
        for (const pair of chosen(pairs, names)) {
          const sides = await reportSides(pair);
          const { config, source, downstream } = pair;
          print(format, pair.name, choosePlan({ plan: config.plan, source, downstream }), sides);
          worst = worse(worst, ...sides.map(({ exit }) => exit));
        }
        process.exitCode = worst;
      } finally {
        await Promise.all(
          [...pairs.values()].flatMap((pair) => [pair.source.close(), pair.downstream.close()]),
        );
      }
    });
}

function chosen(pairs: ReadonlyMap<string, Pair>, names: readonly string[]): readonly Pair[] {
  const unknown = names.filter((name) => !pairs.has(name));
  if (unknown.length > 0) {
    throw new TrueupError('TRU_UNKNOWN_RECONCILIATION', `there is no reconciliation ${unknown.join(', ')}`, {
      exit: EXIT.usage,
      hint: `the config has: ${[...pairs.keys()].join(', ')}`,
    });
  }
  return [...pairs.values()].filter((pair) => names.length === 0 || names.includes(pair.name));
}

/** Both sides described, then each asked for the other's samples by key, as every look of a run will do. */
async function reportSides({ source, downstream }: Pair): Promise<readonly SideReport[]> {
  const [here, there] = await Promise.all([describe('source', source), describe('downstream', downstream)]);
  return Promise.all([lookUp(here, source, there), lookUp(there, downstream, here)]);
}

async function describe(name: SideName, side: Side): Promise<SideReport> {
  try {
    const description = await side.describe(AbortSignal.timeout(DESCRIBE_MS));
    return { side: name, description, error: null, exit: EXIT.clean };
  } catch (error) {
    return failed(name, error);
  }
}

async function lookUp(report: SideReport, side: Side, other: SideReport): Promise<SideReport> {
  const { description } = report;
  const keys = (other.description?.samples ?? []).map(({ key }) => key).filter(isUsableKey);
  if (description === null || keys.length === 0) return report;
  try {
    const found = await side.lookup(keys, AbortSignal.timeout(DESCRIBE_MS));
    const [wanted, seen] = [keys, found.map(({ key }) => key)].map((all) => new Set(all.map(keyText)).size);
    const said = `of ${wanted} sample ${wanted === 1 ? 'key' : 'keys'} of the ${other.side}, ${seen} ${seen === 1 ? 'is' : 'are'} here`;
    if (seen !== 0)
      return { ...report, description: { ...description, notes: [...description.notes, said] } };
    const doubt = `${said}; see that both sides write ${keys.map(displayKey).join(', ')} the same way`;
    return { ...report, description: { ...description, warnings: [...description.warnings, doubt] } };
  } catch (error) {
    return failed(report.side, error);
  }
}

function failed(side: SideName, error: unknown): SideReport {
  if (!(error instanceof SideError)) throw error;
  return { side, description: null, error: error.message, exit: error.exit };
}

/** A mistake in the file comes before a server that is away: waiting does not help it. */
function worse(...exits: readonly ExitCode[]): ExitCode {
  return exits.find((exit) => exit === EXIT.usage) ?? exits.find((exit) => exit !== EXIT.clean) ?? EXIT.clean;
}

function print(
  format: Format,
  name: string,
  plan: { name: string; why: string },
  sides: readonly SideReport[],
): void {
  if (format !== 'table') {
    printLine(JSON.stringify({ reconciliation: name, plan, sides }));
    return;
  }
  printLine(`\n${name}`);
  printLine(`  plan: ${plan.name} (${plan.why})`);
  for (const { side, description, error } of sides) {
    if (description === null) {
      printLine(`  ${side}: ${error}`);
      continue;
    }
    printLine(`  ${side}: ${description.label}`);
    for (const note of description.notes) printLine(`    ${note}`);
    for (const warning of description.warnings) printLine(`    warning: ${warning}`);
    for (const sample of description.samples) printLine(`    ${inOneLine(sample)}`);
  }
}

function inOneLine(record: SideRecord): string {
  const fields = Object.entries(record.fields).map(
    ([field, value]) => `${field} ${value.type === 'null' ? 'null' : value.text}`,
  );
  const key = isUsableKey(record.key) ? displayKey(record.key) : '(no whole key)';
  return `${key}: ${fields.join(', ')}`;
}
