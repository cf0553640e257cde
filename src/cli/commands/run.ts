import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { EXIT, type ExitCode, TrueupError } from '../../error.ts';
import { adhocWindow } from '../../jobs/adhoc-window.ts';
import { startWorker, stepRun } from '../../jobs/worker.ts';
import { recordAudit } from '../../store/audit.ts';
import { openCountOfRuns } from '../../store/compensations.ts';
import { inTransaction } from '../../store/database.ts';
import { listDiffs } from '../../store/list-diffs.ts';
import { type RunDetail, readRun } from '../../store/list-runs.ts';
import { createRun, type RunMode } from '../../store/runs.ts';
import { createProgress, printLine, printRows, say } from '../output.ts';
import { actor, withApp } from '../session.ts';
import { readProgress } from './runs.ts';

interface RunOptions {
  readonly last?: string;
  readonly from?: string;
  readonly to?: string;
  readonly mode?: string;
  readonly detach?: boolean;
  readonly failOnDiff?: boolean;
}

const POLL_MS = 250;
const DRAIN_MS = 20_000;
const MOST_DIFFS = 10_000;

export function registerRun(program: Command): void {
  program
    .command('run <names...>')
    .description('compares a window now, and repairs when asked; needs no server, and is safe beside one')
    .option('--last <duration>', 'the window that ends now: 3h, 90m')
    .option('--from <time>', 'start: local time of the config’s zone, or with an offset')
    .option('--to <time>', 'end; left out: now')
    .option('--mode <mode>', 'check or compensate; left out: check')
    .option('--detach', 'hand the run to the running server and print its id')
    .option('--fail-on-diff', 'exit 3 when there are diffs that nobody resolved or dismissed')
    .addHelpText('after', '\nExample:\n  trueup run payments --last 3h --mode check --format json')
    .action((names: string[], options: RunOptions, command: Command) =>
      withApp(command, async ({ format }, app) => {
        const mode = modeOf(options.mode);
        const ids = await createRuns(app, names, mode, options);
        if (options.detach) {
          printRows(
            format,
            ids.map((id) => ({ run: id })),
            [{ head: 'run', cell: ({ run }) => run }],
          );
          return;
        }
        await (mode === 'check' ? check(app, ids) : compensate(app, ids));
        await printRuns(app, ids, format, options);
      }),
    );
}

function modeOf(text: string | undefined): RunMode {
  if (text === undefined || text === 'check') return 'check';
  if (text === 'compensate') return 'compensate';
  throw new TrueupError('TRU_USAGE', `there is no mode "${text}"`, {
    exit: EXIT.usage,
    hint: 'use check or compensate',
  });
}

async function createRuns(
  app: App,
  names: readonly string[],
  mode: RunMode,
  options: RunOptions,
): Promise<string[]> {
  const windows = await Promise.all(
    names.map(async (name) => {
      const pair = app.pairs.get(name);
      if (!pair) {
        throw new TrueupError('TRU_UNKNOWN_RECONCILIATION', `there is no reconciliation "${name}"`, {
          exit: EXIT.usage,
          hint: `the config has: ${[...app.pairs.keys()].join(', ')}`,
        });
      }
      return { name, ...(await adhocWindow(pair, options, AbortSignal.timeout(30_000))) };
    }),
  );
  const by = actor();
  return inTransaction(app.db, async (trx) => {
    const ids: string[] = [];
    for (const { name, window, movesCoverage } of windows) {
      const id = await createRun(trx, {
        reconciliation: name,
        revision: app.configRevision,
        trigger: 'adhoc',
        mode,
        window,
        movesCoverage,
      });
      await recordAudit(trx, {
        actor: by.name,
        origin: by.origin,
        action: 'run.create',
        subject: `run ${id}`,
        reason: null,
        before: null,
        after: { reconciliation: name, mode, window },
      });
      ids.push(id);
    }
    return ids;
  });
}

/** Steps the runs in this process, without a queue, until they are done or on hold. */
async function check(app: App, ids: readonly string[]): Promise<void> {
  const parts = app.workerParts({ keepsSchedules: false });
  await Promise.all(
    ids.map(async (id) => {
      for (;;) {
        await stepRun(parts, id);
        const run = await readRun(app.db, id);
        if (!run || run.phase === 'done' || run.phase === 'held') return;
        await sleep(POLL_MS);
      }
    }),
  );
}

/** Runs a worker until the runs and all their repairs have ended, then drains it. */
async function compensate(app: App, ids: readonly string[]): Promise<void> {
  const worker = await startWorker(app.workerParts({ keepsSchedules: false }));
  const progress = createProgress();
  const onSignal = () => app.draining.abort();
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  try {
    while (!app.draining.signal.aborted) {
      const runs = await Promise.all(ids.map((id) => readRun(app.db, id)));
      progress.show(runs.map(inOneLine).join(' | '));
      const open = runs.some((run) => run !== null && run.phase !== 'done' && run.phase !== 'held');
      if (!open && (await openCountOfRuns(app.db, ids)) === 0) break;
      await sleep(POLL_MS);
    }
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    progress.end();
    await worker.drain(DRAIN_MS);
  }
}

function inOneLine(run: RunDetail | null): string {
  if (!run) return 'gone';
  const { planned, verified, healed, escalated, sent } = run.compensations;
  return `${run.reconciliation} ${run.phase}: ${planned} planned, ${sent} sent, ${verified} verified, ${healed} healed, ${escalated} escalated`;
}

async function printRuns(
  app: App,
  ids: readonly string[],
  format: string,
  options: RunOptions,
): Promise<void> {
  const reports = await Promise.all(ids.map((id) => reportOf(app, id)));
  if (format === 'table') {
    for (const report of reports) sayReport(report);
  } else if (format === 'ndjson' || reports.length === 1) {
    for (const report of reports) printLine(JSON.stringify(report));
  } else {
    printLine(JSON.stringify(reports));
  }
  process.exitCode = Math.max(...reports.map((report) => exitOf(report, options.failOnDiff ?? false)));
}

async function reportOf(app: App, id: string) {
  const run = await readRun(app.db, id);
  if (!run) throw new Error(`run ${id} is gone`);
  const diffs = await listDiffs(app.db, { runId: id }, { limit: MOST_DIFFS });
  return {
    run: id,
    reconciliation: run.reconciliation,
    window: run.window,
    verdict: run.verdict ?? 'undecided',
    complete: run.result === 'complete' || run.phase === 'held',
    result: run.result ?? run.phase,
    reason: run.reason,
    counts: run.counts,
    guard: run.guard,
    ...(await readProgress(app.db, run.reconciliation)),
    diffs: diffs.map(({ id: diffId, key, kind, fields, state }) => ({
      id: diffId,
      key,
      kind,
      fields,
      state,
    })),
    diffsTruncated: diffs.length === MOST_DIFFS,
    plan: run.plan,
    compensations: run.compensations,
    maxSendsIn60s: run.maxSendsIn60s,
    timings: run.timings,
  };
}

type Report = Awaited<ReturnType<typeof reportOf>>;

/** Incomplete or undecided never ends like "clean". */
function exitOf(report: Report, failOnDiff: boolean): ExitCode {
  const undecided = report.verdict === 'undecided' || report.counts.undecided > 0;
  if (!report.complete || undecided) return EXIT.incomplete;
  // Stopped by a signal before all repairs had ended.
  if (report.compensations.open > 0) return EXIT.incomplete;
  if (report.compensations.escalated > 0 || report.result === 'held') return EXIT.needsPerson;
  if (failOnDiff && report.verdict === 'differ' && leftOpen(report) > 0) return EXIT.diffs;
  return EXIT.clean;
}

/** Differences that no person has resolved or dismissed. */
function leftOpen({ counts: c }: Report): number {
  return c.missing + c.extra + c.mismatched + c.duplicate - c.decided;
}

function sayReport(report: Report): void {
  const { counts: c } = report;
  printLine(`run ${report.run}: ${report.reconciliation} [${report.window?.from} .. ${report.window?.to})`);
  printLine(`  ${report.verdict} (${report.result}${report.reason ? `: ${report.reason}` : ''})`);
  printLine(`  read ${c.source} here, ${c.downstream} there; ${c.matched} match`);
  printLine(`  missing ${c.missing}, extra ${c.extra}, mismatched ${c.mismatched}, duplicate ${c.duplicate}`);
  if (c.decided > 0) printLine(`  of these a person has decided on ${c.decided}`);
  printLine(`  healed by themselves ${c.healed}, undecided ${c.undecided}`);
  const { planned, sent, verified, healed, escalated } = report.compensations;
  if (planned > 0)
    printLine(
      `  repairs: ${planned} planned, ${sent} sent, ${verified} verified, ${healed} healed, ${escalated} escalated`,
    );
  for (const diff of report.diffs.slice(0, 20)) {
    printLine(`  ${diff.kind} ${diff.key.join(' / ')} ${diff.fields.map((field) => field.field).join(', ')}`);
  }
  if (report.diffs.length > 20)
    say(`… and ${report.diffs.length - 20} more: trueup diffs --where run=${report.run}`);
}
