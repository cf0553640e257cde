import type { Command } from 'commander';
import { knownNames } from '../../config/known-names.ts';
import type { StoredGates } from '../../config/stored-gates.ts';
import { EXIT, TrueupError } from '../../error.ts';
import { holdRepairs, releaseRepairs } from '../../jobs/hold-repairs.ts';
import {
  type Decision,
  type DiffOutcome,
  holdTarget,
  releaseHeldRun,
  releaseTarget,
} from '../../jobs/operator.ts';
import type { Db } from '../../store/database.ts';
import { releaseReplay } from '../../store/meta.ts';
import { rowId } from '../../store/row-id.ts';
import { activeGates } from '../active-config.ts';
import { type Column, type Format, printObject, printRows } from '../output.ts';
import { reasonText } from '../reason.ts';
import { actor, withStoreAlone } from '../session.ts';

interface HoldOptions {
  readonly reason: string;
  readonly diff?: string;
}

const COLUMNS: readonly Column<DiffOutcome>[] = [
  { head: 'diff', cell: (outcome) => outcome.id },
  { head: 'done', cell: (outcome) => (outcome.done ? 'yes' : 'no') },
  { head: 'what', cell: (outcome) => (outcome.done ? outcome.what : outcome.why) },
];

/** hold, release: of a target, a run, all replay, or the repairs of single diffs. */
export function registerHolds(program: Command): void {
  program
    .command('hold [target]')
    .description(
      'stops all sends to a target, or with --diff the repairs of single diffs, until released; what is in flight ends',
    )
    .requiredOption('--reason <text>', 'why; kept in the audit', reasonText)
    .option('--diff <ids>', 'ids of diffs, separated by commas, instead of a target')
    .addHelpText('after', '\nExample:\n  trueup hold gateway --reason "gateway asked us to wait"')
    .action((target: string | undefined, options: HoldOptions, command: Command) =>
      withStoreAlone(command, async ({ local, format }, { db }) => {
        const decision = { actor: actor(), reason: options.reason };
        const ids = diffsInstead(target, options, 'target');
        if (ids !== null) return report(format, await holdRepairs(db, ids, decision));
        if (target === undefined) throw usage('say what to hold: a target, or --diff with ids');
        await holdTarget(db, await activeGates(db, local), target, decision);
        printObject(format, { target, held: options.reason });
      }),
    );
  program
    .command('release [what]')
    .description(
      'releases a held target (its name), a held run (its id), all replay after a restore ("store"), or with --diff the repairs of single diffs',
    )
    .requiredOption('--reason <text>', 'why; kept in the audit', reasonText)
    .option('--diff <ids>', 'ids of diffs, separated by commas')
    .addHelpText('after', '\nExample:\n  trueup release 12 --reason "checked 20 of them by hand"')
    .action((what: string | undefined, options: HoldOptions, command: Command) =>
      withStoreAlone(command, async ({ local, format }, { db }) => {
        const decision = { actor: actor(), reason: options.reason };
        const ids = diffsInstead(what, options, 'name');
        if (ids !== null) return report(format, await releaseRepairs(db, ids, decision));
        if (what === undefined)
          throw usage('say what to release: a target, a run, store, or --diff with ids');
        const released = /^\d+$/.test(what)
          ? await releaseHeldRun(db, what, decision)
          : what === 'store'
            ? await releaseStore(db, options.reason)
            : await releaseByName(db, await activeGates(db, local), what, decision);
        if (!released) throw new TrueupError('TRU_NOT_HELD', `${what} is not on hold`, { exit: EXIT.usage });
        printObject(format, { released: what });
      }),
    );
}

function diffsInstead(given: string | undefined, { diff }: HoldOptions, noun: string): string[] | null {
  if (diff === undefined) return null;
  if (given !== undefined) throw usage(`give a ${noun} or --diff, not both`);
  return diff.split(',').map((id) => rowId(id.trim()));
}

/** What is no run and no target: a target of that name may be meant, or the word for all replay. */
async function releaseByName(db: Db, gates: StoredGates, name: string, decision: Decision): Promise<boolean> {
  const names = Object.keys(gates.targets);
  if (names.includes(name)) return releaseTarget(db, gates, name, decision);
  throw new TrueupError('TRU_UNKNOWN_TARGET', `there is no target "${name}"`, {
    exit: EXIT.usage,
    hint: `${knownNames(name, [...names, 'store'], 'targets')}; or give the id of a run`,
  });
}

function releaseStore(db: Db, reason: string): Promise<boolean> {
  const { name, origin } = actor();
  return releaseReplay(db, reason, name, origin);
}

function report(format: Format, outcomes: readonly DiffOutcome[]): void {
  printRows(format, outcomes, COLUMNS);
  if (outcomes.some((outcome) => !outcome.done)) process.exitCode = EXIT.unexpected;
}

function usage(message: string): TrueupError {
  return new TrueupError('TRU_USAGE', message, { exit: EXIT.usage });
}
