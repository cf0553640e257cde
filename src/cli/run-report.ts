import type { App } from '../app.ts';
import { MINUTE } from '../compensate/gate/watermark.ts';
import { EXIT, type ExitCode } from '../error.ts';
import { etaOf } from '../jobs/eta.ts';
import { sendLoads } from '../jobs/send-loads.ts';
import { displayKey } from '../reconcile/record.ts';
import { storeClock } from '../store/database.ts';
import { listDiffs } from '../store/list-diffs.ts';
import { readRun } from '../store/list-runs.ts';
import { planOfRun, type StoredPlan } from '../store/plans.ts';
import { needPerson } from '../store/run-progress.ts';
import { readProgress } from './commands/runs.ts';
import type { Followed } from './follow-runs.ts';
import { type Format, printLine, say } from './output.ts';

const MOST_DIFFS = 10_000;
const SAMPLE = 20;

/** Everything about a run as it stands: the one object that `--format json` prints. */
export async function reportOf(app: App, id: string, followed: Followed | null) {
  const run = await readRun(app.db, id);
  if (!run) throw new Error(`run ${id} is gone`);
  const [diffs, stored, needsPerson] = await Promise.all([
    listDiffs(app.db, { runId: id }, { limit: MOST_DIFFS }),
    planOfRun(app.db, id),
    needPerson(app.db, id),
  ]);
  const reading = run.plan as { readonly name: string; readonly why: string } | null;
  return {
    run: id,
    reconciliation: run.reconciliation,
    mode: run.mode,
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
    // How the window was read and, in mode plan, what would be sent.
    plan: run.plan === null && stored === null ? null : { ...reading, ...(await planReport(app, stored)) },
    compensations: run.compensations,
    needsPerson,
    waitingFor: followed?.ended === 'gave-up' ? followed.waitingFor : [],
    watermark: run.watermark,
    maxSendsIn60s: run.maxSendsIn60s,
    timings: run.timings,
  };
}

export type RunReport = Awaited<ReturnType<typeof reportOf>>;

async function planReport(app: App, stored: StoredPlan | null) {
  if (stored === null) return {};
  return {
    id: stored.id,
    sends: sendsOf(stored),
    byKind: stored.summary.byKind,
    byTarget: stored.summary.byTarget,
    left: stored.summary.left,
    eta: await etaOfPlan(app, stored),
    expiresAt: stored.expiresAt,
    executedAt: stored.executedAt,
    outcome: stored.outcome,
  };
}

export function sendsOf({ summary }: StoredPlan): number {
  return Object.values(summary.byTarget).reduce((sum, count) => sum + count, 0);
}

/** When the sends of a plan would be done, at the watermarks as they are now. */
export async function etaOfPlan(app: App, stored: StoredPlan, watermark?: number | null) {
  const sends = Object.entries(stored.summary.byTarget).map(([target, count]) => ({
    target,
    sends: count,
    inLedger: false,
  }));
  const own = watermark ?? (await readRun(app.db, stored.runId))?.watermark ?? null;
  const loads = await sendLoads(app.db, app.config.targets, sends, own);
  const now = await storeClock(app.db);
  return etaOf(loads, { now, zone: app.config.timezone, timing: MINUTE });
}

/** Incomplete or undecided never ends like "clean", and neither does what was left waiting. */
export function exitOf(report: RunReport, followed: Followed | null, failOnDiff: boolean): ExitCode {
  if (followed?.ended === 'gave-up') return followed.needsPerson ? EXIT.needsPerson : EXIT.temporary;
  const undecided = report.verdict === 'undecided' || report.counts.undecided > 0;
  if (!report.complete || undecided) return EXIT.incomplete;
  // Stopped by a signal before all repairs had ended.
  if (report.compensations.open > 0) return EXIT.incomplete;
  if (report.needsPerson > 0 || report.result === 'held') return EXIT.needsPerson;
  if (failOnDiff && report.verdict === 'differ' && leftOpen(report) > 0) return EXIT.diffs;
  return EXIT.clean;
}

/** Differences that no person has resolved or dismissed. */
function leftOpen({ counts: c }: RunReport): number {
  return c.missing + c.extra + c.mismatched + c.duplicate - c.decided;
}

/** One run is one object, also in JSON; several are a list. */
export function printReports(reports: readonly RunReport[], format: Format): void {
  if (format === 'table') {
    for (const report of reports) sayReport(report);
  } else if (format === 'ndjson' || reports.length === 1) {
    for (const report of reports) printLine(JSON.stringify(report));
  } else {
    printLine(JSON.stringify(reports));
  }
}

function sayReport(report: RunReport): void {
  const { counts: c, window, plan } = report;
  printLine(
    `run ${report.run}: ${report.reconciliation}${window === null ? '' : ` [${window.from} .. ${window.to})`}`,
  );
  printLine(`  ${report.verdict} (${report.result}${report.reason ? `: ${report.reason}` : ''})`);
  printLine(`  read ${c.source} here, ${c.downstream} there; ${c.matched} match`);
  printLine(`  missing ${c.missing}, extra ${c.extra}, mismatched ${c.mismatched}, duplicate ${c.duplicate}`);
  if (c.decided > 0) printLine(`  of these a person has decided on ${c.decided}`);
  printLine(`  healed by themselves ${c.healed}, undecided ${c.undecided}`);
  const { planned, sent, verified, healed, escalated, open } = report.compensations;
  if (planned > 0)
    printLine(
      `  repairs: ${planned} planned, ${sent} sent, ${verified} verified, ${healed} healed, ${escalated} escalated${open > 0 ? `, ${open} open` : ''}`,
    );
  for (const diff of report.diffs.slice(0, SAMPLE)) {
    const fields = diff.fields.map((field) => field.field).join(', ');
    printLine(`  ${diff.kind} ${displayKey(diff.key)} ${fields}`.trimEnd());
  }
  const stored = plan?.id === undefined ? null : plan;
  if (stored !== null) sayPlan(stored);
  if (report.diffs.length > SAMPLE)
    say(`… and ${report.diffs.length - SAMPLE} more: trueup diffs --where run=${report.run}`);
  if (report.needsPerson > 0)
    say(`${report.needsPerson} need a person: trueup diffs --where run=${report.run}`);
  for (const reason of report.waitingFor) say(`left waiting: ${reason}`);
  if (report.result === 'held')
    say(
      `on hold: let it plan with trueup release ${report.run}, or end it with trueup discard ${report.run}`,
    );
}

function sayPlan(plan: Extract<NonNullable<RunReport['plan']>, { id: string }>): void {
  const kinds = Object.entries(plan.byKind).map(([kind, count]) => `${kind} ${count}`);
  printLine(`  plan ${plan.id}: ${kinds.length > 0 ? kinds.join(', ') : 'nothing to send'}`);
  const { reported, underWay, needPerson: persons } = plan.left;
  if (reported + underWay + persons > 0)
    printLine(
      `    not in it: ${reported} only reported, ${underWay} under way already, ${persons} need a person`,
    );
  if (plan.outcome !== null) {
    const { planned, skipped: s } = plan.outcome;
    printLine(
      `    executed: ${planned} planned; skipped ${s.changed} changed, ${s.decided} decided, ${s.underWay} under way, ${s.notPlanned} not planned`,
    );
    return;
  }
  if (plan.sends === 0) return;
  printLine(`    ${plan.eta.text}`);
  printLine(`    execute it until ${plan.expiresAt} with: trueup run --plan ${plan.id}`);
}
