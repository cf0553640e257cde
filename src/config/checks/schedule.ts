import type { CrossProblem } from '../cross-problem.ts';
import type { Path } from '../path.ts';
import type { Reconciliation } from '../schema.ts';
import { checkCron } from './cron.ts';
import { canScan } from './side.ts';
import { checkZone } from './zone.ts';

/** When a reconciliation runs, over which window, and whether its sides can be read by window at all. */
export function checkSchedule(
  path: Path,
  reconciliation: Reconciliation,
  written: unknown,
): readonly CrossProblem[] {
  const { schedule } = reconciliation;
  const at = [...path, 'schedule'];
  const problems: CrossProblem[] = [
    ...checkWindow(path, reconciliation),
    ...checkScanning(path, reconciliation),
  ];
  if (schedule === undefined) return problems;
  problems.push(...checkCron(typeof written === 'string' ? at : [...at, 'cron'], schedule.cron));
  problems.push(...checkZone([...at, 'timezone'], schedule.timezone));
  return problems;
}

function checkWindow(path: Path, { window, schedule }: Reconciliation): CrossProblem[] {
  const at = [...path, 'window'];
  const reads = [
    [...at, 'lookback'],
    [...at, 'day'],
    [...path, 'schedule'],
  ];
  const problems: CrossProblem[] = [];
  if (window.lookback !== undefined && window.day !== undefined)
    problems.push({
      path: at,
      predicate: 'has both lookback and day',
      hint: 'keep lookback (the last hour: 1h) or day: yesterday',
      reads,
    });
  if (schedule !== undefined && window.lookback === undefined && window.day === undefined)
    problems.push({
      path: at,
      predicate: 'does not say which records a scheduled run covers',
      hint: 'add window.lookback, such as 1h, or window.day: yesterday',
      reads,
    });
  if (window.maxTransactionAge !== undefined && window.settle < window.maxTransactionAge)
    problems.push({
      path: [...at, 'settle'],
      predicate: 'is shorter than maxTransactionAge',
      hint: 'a transaction that is still open could add records behind the window: make settle at least as long',
      reads: [[...at, 'maxTransactionAge']],
    });
  return problems;
}

function checkScanning(path: Path, reconciliation: Reconciliation): CrossProblem[] {
  const { source, downstream, plan, repair } = reconciliation;
  const problems: CrossProblem[] = [];
  const need = (side: 'source' | 'downstream', why: string): void => {
    const database = reconciliation[side].type !== 'http';
    problems.push({
      path: [...path, side],
      predicate: `has no ${database ? 'time' : 'list'}, ${why}`,
      hint: database
        ? 'add time: the timestamp column that selects the window'
        : 'add list: the call that lists a window',
      reads: [
        [...path, side, database ? 'time' : 'list'],
        [...path, side, 'type'],
      ],
    });
  };
  if (!canScan(source)) need('source', 'so the records of a window cannot be found');
  if (!canScan(downstream) && plan === 'merge') need('downstream', 'which plan: merge needs');
  else if (!canScan(downstream) && repair.extra !== 'report')
    need('downstream', 'so nothing extra is ever found there to repair');
  return problems;
}
