import type { Command } from 'commander';
import { parseDuration } from '../../config/duration.ts';
import { EXIT, TrueupError } from '../../error.ts';
import { cancelRepairs, closeDiffs, type DiffOutcome, failDiffs } from '../../jobs/operator.ts';
import { replayDiffs } from '../../jobs/replay.ts';
import type { Db } from '../../store/database.ts';
import { listDiffs } from '../../store/list-diffs.ts';
import { confirm } from '../confirm.ts';
import { diffFilters, WHERE_HELP } from '../diff-filters.ts';
import { type Column, createProgress, type Format, printRows, say } from '../output.ts';
import { reasonText } from '../reason.ts';
import { actor, withActiveApp, withStoreAlone } from '../session.ts';

interface Selection {
  readonly where?: string;
  readonly reason: string;
  readonly yes?: boolean;
  readonly for?: string;
}

const COLUMNS: readonly Column<DiffOutcome>[] = [
  { head: 'diff', cell: (outcome) => outcome.id },
  { head: 'done', cell: (outcome) => (outcome.done ? 'yes' : 'no') },
  { head: 'what', cell: (outcome) => (outcome.done ? outcome.what : outcome.why) },
];
const PAGE = 500;

/** replay, resolve, fail, dismiss, cancel: a decision on diffs, by ids or by a filter that is counted first. */
export function registerDecisions(program: Command): void {
  const decision = (name: string, description: string, example: string): Command =>
    program
      .command(`${name} [ids...]`)
      .description(description)
      .requiredOption('--reason <text>', 'why; kept in the audit', reasonText)
      .option('--where <filter>', WHERE_HELP)
      .option('--yes', 'do not ask')
      .addHelpText('after', `\nExample:\n  ${example}`);

  decision(
    'replay',
    'repairs diffs once more, after a fresh look',
    'trueup replay 4213 --reason "gateway fixed its signature check"',
  ).action((ids: string[], options: Selection, command: Command) =>
    withActiveApp(command, async ({ format }, app) => {
      const chosen = await choose(app.db, ids, options, 'replay');
      const by = { actor: actor(), reason: options.reason };
      const progress = createProgress();
      const show = (done: number) => progress.show(`${done} of ${chosen.length} looked at`);
      const outcomes = await replayDiffs(app, chosen, by, show).finally(progress.end);
      report(format, outcomes);
    }),
  );
  decision(
    'resolve',
    'closes diffs that were settled by hand',
    'trueup resolve 4213 --reason "refunded by phone"',
  ).action((ids: string[], options: Selection, command: Command) =>
    withStoreAlone(command, async ({ format }, { db }) => {
      const chosen = await choose(db, ids, options, 'resolve');
      report(
        format,
        await closeDiffs(db, chosen, { state: 'resolved' }, { actor: actor(), reason: options.reason }),
      );
    }),
  );
  decision(
    'dismiss',
    'accepts diffs as they are',
    'trueup dismiss --where kind=extra --for 30d --reason "test orders"',
  )
    .option('--for <duration>', 'only for this long')
    .action((ids: string[], options: Selection, command: Command) =>
      withStoreAlone(command, async ({ format }, { db }) => {
        const forMs = options.for === undefined ? {} : { dismissedForMs: durationOf(options.for) };
        const chosen = await choose(db, ids, options, 'dismiss');
        const end = { state: 'dismissed' as const, ...forMs };
        report(format, await closeDiffs(db, chosen, end, { actor: actor(), reason: options.reason }));
      }),
    );
  decision(
    'fail',
    'marks diffs as not repairable from here; they stay in sight',
    'trueup fail 4213 --reason "customer gone"',
  ).action((ids: string[], options: Selection, command: Command) =>
    withStoreAlone(command, async ({ format }, { db }) => {
      const chosen = await choose(db, ids, options, 'fail');
      report(format, await failDiffs(db, chosen, { actor: actor(), reason: options.reason }));
    }),
  );
  decision(
    'cancel',
    'ends the repairs of diffs that were not sent yet',
    'trueup cancel --where run=12 --reason "wrong window"',
  ).action((ids: string[], options: Selection, command: Command) =>
    withStoreAlone(command, async ({ format }, { db }) => {
      const chosen = await choose(db, ids, options, 'cancel');
      report(format, await cancelRepairs(db, chosen, { actor: actor(), reason: options.reason }));
    }),
  );
}

function durationOf(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms > 0) return ms;
  throw new TrueupError('TRU_BAD_DURATION', `--for "${text}" is no duration`, {
    exit: EXIT.usage,
    hint: 'write 30d, 12h or P30D',
  });
}

/** Ids as given, or all that the filter matches, counted and asked for first. */
async function choose(db: Db, ids: readonly string[], options: Selection, verb: string): Promise<string[]> {
  if (ids.length > 0 && options.where !== undefined) throw usage('give ids or --where, not both');
  if (ids.length > 0) {
    const odd = ids.find((id) => !/^\d{1,18}$/.test(id));
    if (odd !== undefined) throw usage(`"${odd}" is no diff id`);
    return [...new Set(ids)];
  }
  if (options.where === undefined) throw usage(`say which diffs to ${verb}: ids, or --where`);
  const matching = await allMatching(db, options.where);
  const many = `${matching.length} ${matching.length === 1 ? 'diff' : 'diffs'}`;
  say(`${many} found with ${options.where}`);
  if (matching.length === 0) return matching;
  await confirm(`${verb} ${many}`, String(matching.length), options.yes);
  return matching;
}

async function allMatching(db: Db, where: string): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const last = ids.at(-1);
    const page = await listDiffs(db, diffFilters(where), {
      limit: PAGE,
      ...(last === undefined ? {} : { after: last }),
    });
    ids.push(...page.map((diff) => diff.id));
    if (page.length < PAGE) return ids;
  }
}

function report(format: Format, outcomes: readonly DiffOutcome[]): void {
  printRows(format, outcomes, COLUMNS);
  if (outcomes.some((outcome) => !outcome.done)) process.exitCode = EXIT.unexpected;
}

function usage(message: string): TrueupError {
  return new TrueupError('TRU_USAGE', message, { exit: EXIT.usage });
}
