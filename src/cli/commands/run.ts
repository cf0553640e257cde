import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { knownNames } from '../../config/known-names.ts';
import { EXIT, TrueupError } from '../../error.ts';
import { adhocWindow } from '../../jobs/adhoc-window.ts';
import { executePlan, noPlan, refuseEnded } from '../../jobs/execute-plan.ts';
import type { Pair } from '../../jobs/pair.ts';
import { assertRunWatermark } from '../../jobs/run-watermark.ts';
import { stepRun } from '../../jobs/worker.ts';
import { recordAudit } from '../../store/audit.ts';
import { inTransaction } from '../../store/database.ts';
import { readRun } from '../../store/list-runs.ts';
import { readPlan } from '../../store/plans.ts';
import { createRun, type RunGuard } from '../../store/runs.ts';
import { confirm } from '../confirm.ts';
import { type Followed, followRuns, serverIsUp } from '../follow-runs.ts';
import { type Format, printRows, say } from '../output.ts';
import { etaOfPlan, exitOf, printReports, reportOf, sendsOf } from '../run-report.ts';
import { type PlanRequest, type RunOptions, runRequest, type WindowRequest } from '../run-request.ts';
import { actor, withApp } from '../session.ts';

const POLL_MS = 250;

export function registerRun(program: Command): void {
  program
    .command('run [names...]')
    .description('compares a window now, and repairs when asked; needs no server, and is safe beside one')
    .option('--last <duration>', 'the window that ends now: 3h, 90m')
    .option('--from <time>', 'start: local time of the config’s zone, or with an offset')
    .option('--to <time>', 'end; left out: now')
    .option('--mode <mode>', 'check, plan (store what would be sent) or compensate; left out: check')
    .option('--watermark <n>', 'at most so many sends a minute for this run, below the target’s ceiling')
    .option('--plan <id>', 'execute a stored plan, instead of names and a window')
    .option('--yes', 'execute the plan without asking')
    .option('--wait', 'while a server is running, leave the work to it and follow it')
    .option('--wait-for <duration>', 'stop waiting when nothing moved for this long', '30m')
    .option('--detach', 'leave the run to the server, and print its id')
    .option('--fail-on-diff', 'exit 3 when there are diffs that nobody resolved or dismissed')
    .addHelpText(
      'after',
      `
Example:
  trueup run payments --last 3h --mode check --format json
  trueup run payments --from 2026-11-30T02:00 --to 2026-11-30T05:00 --mode plan
  trueup run --plan 7 --watermark 50 --wait

Without --wait this process does the work, until all of its repairs have ended; Ctrl-C ends what is in flight and
leaves the rest. With --wait a running server does it, and Ctrl-C only ends the watching.`,
    )
    .action((names: string[], options: RunOptions, command: Command) => {
      const request = runRequest(names, options);
      return withApp(command, async ({ format }, app) => {
        const started =
          request.kind === 'plan' ? await executeStored(app, request) : await startRuns(app, request);
        if (request.end === 'detach') await detach(app, started, format);
        else await finish(app, started, request, format);
      });
    });
}

async function detach(app: App, ids: readonly string[], format: Format): Promise<void> {
  if (!(await serverIsUp(app.db))) say('no server is running: it waits until one is (trueup up)');
  printRows(
    format,
    ids.map((id) => ({ run: id })),
    [{ head: 'run', cell: ({ run }) => run }],
  );
}

async function finish(
  app: App,
  ids: readonly string[],
  request: WindowRequest | PlanRequest,
  format: Format,
): Promise<void> {
  const sends = request.kind === 'plan' || request.mode === 'compensate';
  const { waitForMs, watermark } = request;
  let followed: Followed | null = null;
  if (sends)
    followed = await followRuns(app, ids, { leaveToServer: request.end === 'wait', waitForMs, watermark });
  else await stepRuns(app, ids);
  const reports = await Promise.all(ids.map((id) => reportOf(app, id, followed)));
  printReports(reports, format);
  process.exitCode = Math.max(...reports.map((report) => exitOf(report, followed, request.failOnDiff)));
}

// ------------------------------------------------------------------------------------------------- over a window

async function startRuns(app: App, request: WindowRequest): Promise<string[]> {
  const { mode, watermark } = request;
  const pairs = request.names.map((name) => pairOf(app, name));
  if (watermark !== null)
    for (const pair of pairs) await assertRunWatermark(app.db, app.config.targets, pair, watermark);
  const windows = await Promise.all(
    pairs.map(async (pair) => ({
      name: pair.name,
      ...(await adhocWindow(pair, request.window, AbortSignal.timeout(30_000))),
    })),
  );
  const { name: by, origin } = actor();
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
        watermark,
      });
      await recordAudit(trx, {
        actor: by,
        origin,
        action: 'run.create',
        subject: `run ${id}`,
        reason: null,
        before: null,
        after: { reconciliation: name, mode, window, ...(watermark === null ? {} : { watermark }) },
      });
      ids.push(id);
    }
    return ids;
  });
}

function pairOf(app: App, name: string): Pair {
  const pair = app.pairs.get(name);
  if (pair) return pair;
  throw new TrueupError('TRU_UNKNOWN_RECONCILIATION', `there is no reconciliation "${name}"`, {
    exit: EXIT.usage,
    hint: knownNames(name, [...app.pairs.keys()], 'reconciliations'),
  });
}

/** Steps the runs in this process, without a queue, until they are done or on hold. */
async function stepRuns(app: App, ids: readonly string[]): Promise<void> {
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

// ------------------------------------------------------------------------------------------------ of a stored plan

async function executeStored(app: App, { id, watermark, yes }: PlanRequest): Promise<string[]> {
  const plan = await readPlan(app.db, id);
  if (plan === null) throw noPlan(id);
  const run = await readRun(app.db, plan.runId);
  refuseEnded(plan, { result: run?.result ?? null });
  if (watermark !== null)
    await assertRunWatermark(app.db, app.config.targets, pairOf(app, plan.reconciliation), watermark);
  const eta = await etaOfPlan(app, plan, watermark);
  const sends = sendsOf(plan);
  say(`plan ${id} of ${plan.reconciliation}: ${eta.text}`);
  const guard = (run?.guard ?? null) as RunGuard | null;
  if (guard !== null) say(`the guard saw: ${guard.pattern}; executing the plan counts as its release`);
  await confirm(`execute plan ${id}: ${sends} sends`, String(sends), yes);
  const { runId, outcome } = await executePlan(app, id, { actor: actor(), watermark });
  const { changed, decided, underWay, notPlanned } = outcome.skipped;
  say(
    `${outcome.planned} planned; skipped: ${changed} changed, ${decided} decided, ${underWay} under way, ${notPlanned} not planned`,
  );
  return [runId];
}
