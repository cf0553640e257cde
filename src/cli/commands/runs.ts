import type { Command } from 'commander';
import { EXIT, TrueupError } from '../../error.ts';
import { listRuns, type RunDetail, readRun } from '../../store/list-runs.ts';
import { type Column, printRows } from '../output.ts';
import { withStore } from '../session.ts';

const COLUMNS: readonly Column<RunDetail>[] = [
  { head: 'id', cell: (run) => run.id },
  { head: 'reconciliation', cell: (run) => run.reconciliation },
  { head: 'from', cell: (run) => run.window?.from ?? '-' },
  { head: 'to', cell: (run) => run.window?.to ?? '-' },
  { head: 'result', cell: (run) => run.result ?? run.phase },
  { head: 'verdict', cell: (run) => run.verdict ?? '-' },
  { head: 'diffs', cell: ({ counts: c }) => String(c.missing + c.extra + c.mismatched + c.duplicate) },
  { head: 'verified', cell: (run) => `${run.compensations.verified}/${run.compensations.planned}` },
  { head: 'escalated', cell: (run) => String(run.compensations.escalated) },
  { head: 'reason', cell: (run) => run.reason ?? '' },
];

export function registerRuns(program: Command): void {
  program
    .command('runs [name]')
    .description('lists runs, newest first, with what became of their diffs')
    .option('--limit <n>', 'how many', '20')
    .addHelpText('after', '\nExample:\n  trueup runs payments --limit 5')
    .action((name: string | undefined, options: { limit: string }, command: Command) =>
      withStore(command, async ({ format }, { db }) => {
        const listed = await listRuns(db, {
          limit: wholeNumber(options.limit, '--limit'),
          ...(name === undefined ? {} : { reconciliation: name }),
        });
        const details = await Promise.all(listed.map((run) => readRun(db, run.id)));
        printRows(
          format,
          details.filter((run) => run !== null),
          COLUMNS,
        );
      }),
    );
}

export function wholeNumber(text: string, option: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new TrueupError('TRU_USAGE', `${option} ${text} is no whole number above 0`, { exit: EXIT.usage });
}
