import type { Command } from 'commander';
import { EXIT, TrueupError } from '../../error.ts';
import { displayKey } from '../../reconcile/record.ts';
import { type DiffTimeline, readDiffTimeline, type TimelineEntry } from '../../store/diff-timeline.ts';
import { type DiffListing, listDiffs } from '../../store/list-diffs.ts';
import { diffFilters, WHERE_HELP } from '../diff-filters.ts';
import { type Column, printLine, printObject, printRows } from '../output.ts';
import { withStoreAlone } from '../session.ts';
import { wholeNumber } from '../whole-number.ts';

const COLUMNS: readonly Column<DiffListing>[] = [
  { head: 'id', cell: (diff) => diff.id },
  { head: 'reconciliation', cell: (diff) => diff.reconciliation },
  { head: 'key', cell: (diff) => displayKey(diff.key) },
  { head: 'kind', cell: (diff) => diff.kind },
  { head: 'fields', cell: (diff) => diff.fields.map(({ field }) => field).join(', ') },
  { head: 'state', cell: (diff) => diff.state },
  { head: 'repair', cell: (diff) => diff.compensation?.state ?? '-' },
  { head: 'why', cell: (diff) => diff.compensation?.escalation ?? '' },
  { head: 'seen', cell: (diff) => String(diff.timesSeen) },
];

export function registerDiffs(program: Command): void {
  program
    .command('diffs')
    .description('lists diffs, newest first; open ones unless --where says otherwise')
    .option('--where <filter>', WHERE_HELP)
    .option('--limit <n>', 'how many', '50')
    .addHelpText('after', '\nExample:\n  trueup diffs --where reconciliation=payments,reason=refused')
    .action((options: { where?: string; limit: string }, command: Command) =>
      withStoreAlone(command, async ({ format }, { db }) => {
        const filters = diffFilters(options.where);
        printRows(
          format,
          await listDiffs(db, filters, { limit: wholeNumber(options.limit, '--limit') }),
          COLUMNS,
        );
      }),
    );
  program
    .command('diff <id>')
    .description('shows one diff whole: both records, every look, attempt and decision')
    .addHelpText('after', '\nExample:\n  trueup diff 4213')
    .action((id: string, _options, command: Command) =>
      withStoreAlone(command, async ({ format }, { db }) => {
        const found = await readDiffTimeline(db, id);
        if (!found) {
          throw new TrueupError('TRU_NO_DIFF', `there is no diff ${id}`, {
            exit: EXIT.usage,
            hint: 'list them with: trueup diffs',
          });
        }
        if (format === 'table') printDiff(found);
        else printLine(JSON.stringify(found));
      }),
    );
}

function printDiff({ diff, compensations, timeline, previous }: DiffTimeline): void {
  printObject('table', {
    diff: diff.id,
    key: displayKey(diff.key),
    reconciliation: diff.reconciliation,
    kind: diff.kind,
    state: diff.state,
    'first seen': diff.firstSeen,
    'times seen': diff.timesSeen,
    trace: diff.traceId,
    source: diff.source?.fields ?? 'no record',
    downstream: diff.downstream?.fields ?? 'no record',
  });
  for (const field of diff.fields) {
    const text = (value: typeof field.source) => (value.type === 'null' ? 'null' : value.text);
    printLine(
      `  ${field.field}: ${text(field.source)} here, ${text(field.downstream)} there (rule: ${field.rule})`,
    );
  }
  for (const compensation of compensations) {
    printLine(
      `\nrepair ${compensation.id} -> ${compensation.target}: ${compensation.state}` +
        `${compensation.escalation ? ` (${compensation.escalation})` : ''}, key ${compensation.idempotencyKey}`,
    );
    if (compensation.detail) printLine(`  ${compensation.detail}`);
  }
  printLine('');
  for (const entry of timeline) printLine(`${entry.at}  ${inWords(entry)}`);
  for (const earlier of previous) printLine(`earlier diff of this key: ${earlier.id} (${earlier.state})`);
}

function inWords(entry: TimelineEntry): string {
  switch (entry.entry) {
    case 'planned':
      return `repair ${entry.compensationId} planned`;
    case 'event':
      return `${entry.event} ${JSON.stringify(entry.detail)}`;
    case 'attempt':
      return `attempt ${entry.number} to ${entry.target}: ${entry.outcome ?? 'under way'} ${entry.code ?? ''}`.trimEnd();
  }
}
