import type { Command } from 'commander';
import type { Instant } from '../../reconcile/instant.ts';
import { readCoverage, readProven } from '../../store/coverage.ts';
import type { Db } from '../../store/database.ts';
import { listRuns, type RunDetail, readRun } from '../../store/list-runs.ts';
import { type Column, printRows, say } from '../output.ts';
import { withStoreAlone } from '../session.ts';
import { wholeNumber } from '../whole-number.ts';

const COLUMNS: readonly Column<RunDetail>[] = [
  { head: 'id', cell: (run) => run.id },
  { head: 'reconciliation', cell: (run) => run.reconciliation },
  { head: 'from', cell: (run) => run.window?.from ?? '-' },
  { head: 'to', cell: (run) => run.window?.to ?? '-' },
  { head: 'result', cell: (run) => run.result ?? run.phase },
  { head: 'verdict', cell: (run) => run.verdict ?? '-' },
  { head: 'diffs', cell: ({ counts: c }) => String(c.missing + c.extra + c.mismatched + c.duplicate) },
  { head: 'decided', cell: ({ counts: c }) => String(c.decided) },
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
      withStoreAlone(command, async ({ format }, { db }) => {
        const listed = await listRuns(db, {
          limit: wholeNumber(options.limit, '--limit'),
          ...(name === undefined ? {} : { reconciliation: name }),
        });
        const details = (await Promise.all(listed.map((run) => readRun(db, run.id)))).filter(
          (run) => run !== null,
        );
        const progress = await progressOf(db, new Set(details.map((run) => run.reconciliation)));
        printRows(
          format,
          details.map((run) => ({ ...run, ...progress.get(run.reconciliation) })),
          COLUMNS,
        );
        if (format !== 'table') return;
        for (const [reconciliation, { coveredTo, provenTo }] of progress)
          say(`${reconciliation}: read up to ${coveredTo ?? '-'}, nothing open before ${provenTo ?? '-'}`);
      }),
    );
}

/** How far each reconciliation is now; the same for all of its runs. */
export interface Progress {
  readonly coveredTo: Instant | null;
  readonly provenTo: Instant | null;
}

export async function readProgress(db: Db, reconciliation: string): Promise<Progress> {
  return {
    coveredTo: await readCoverage(db, reconciliation),
    provenTo: await readProven(db, reconciliation),
  };
}

async function progressOf(db: Db, reconciliations: ReadonlySet<string>): Promise<Map<string, Progress>> {
  const progress = new Map<string, Progress>();
  for (const name of reconciliations) progress.set(name, await readProgress(db, name));
  return progress;
}
