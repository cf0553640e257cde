import type { Command } from 'commander';
import { openPairs } from '../../app.ts';
import { EXIT, TrueupError } from '../../error.ts';
import { choosePlan } from '../../reconcile/read-window.ts';
import { displayKey, type SideRecord } from '../../reconcile/record.ts';
import { type Side, type SideDescription, SideError } from '../../reconcile/side.ts';
import { unfairPairs } from '../../reconcile/value/unfair-pairs.ts';
import { type Format, printLine, say } from '../output.ts';
import { openSession } from '../session.ts';

const DESCRIBE_MS = 60_000;

interface SideReport {
  readonly side: 'source' | 'downstream';
  readonly description: SideDescription | null;
  readonly error: string | null;
  readonly transient: boolean;
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
      const pairs = openPairs(loaded.config, { take: async () => {} });
      const chosen = [...pairs.values()].filter((pair) => names.length === 0 || names.includes(pair.name));
      const unknown = names.filter((name) => !pairs.has(name));
      if (unknown.length > 0) {
        throw new TrueupError(
          'TRU_UNKNOWN_RECONCILIATION',
          `there is no reconciliation ${unknown.join(', ')}`,
          {
            exit: EXIT.usage,
            hint: `the config has: ${[...pairs.keys()].join(', ')}`,
          },
        );
      }
      let worst = 0;
      try {
        for (const pair of chosen) {
          const sides = await Promise.all([
            describe('source', pair.source),
            describe('downstream', pair.downstream),
          ]);
          const plan = choosePlan({
            plan: pair.config.plan,
            source: pair.source,
            downstream: pair.downstream,
          });
          const [source, downstream] = sides.map(({ description }) => description?.columns ?? []);
          const { compare, key } = pair.config;
          print(format, pair.name, plan, sides, unfairPairs(source ?? [], downstream ?? [], compare, key));
          worst = Math.max(worst, ...sides.map(exitOf));
        }
      } finally {
        await Promise.all(
          [...pairs.values()].flatMap((pair) => [pair.source.close(), pair.downstream.close()]),
        );
      }
      process.exitCode = worst;
    });
}

async function describe(name: SideReport['side'], side: Side): Promise<SideReport> {
  try {
    return {
      side: name,
      description: await side.describe(AbortSignal.timeout(DESCRIBE_MS)),
      error: null,
      transient: false,
    };
  } catch (error) {
    if (!(error instanceof SideError)) throw error;
    return { side: name, description: null, error: error.message, transient: error.transient };
  }
}

function exitOf(report: SideReport): number {
  if (report.error === null) return EXIT.clean;
  return report.transient ? EXIT.temporary : EXIT.usage;
}

function print(
  format: Format,
  name: string,
  plan: { name: string; why: string },
  sides: readonly SideReport[],
  warnings: readonly string[],
): void {
  if (format !== 'table') {
    printLine(JSON.stringify({ reconciliation: name, plan, sides, warnings }));
    return;
  }
  printLine(`\n${name}`);
  printLine(`  plan: ${plan.name} (${plan.why})`);
  for (const warning of warnings) printLine(`  warning: ${warning}`);
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
  return `${displayKey(record.key)}: ${fields.join(', ')}`;
}
