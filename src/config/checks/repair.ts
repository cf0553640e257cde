import type { CrossProblem } from '../cross-problem.ts';
import { formatDuration } from '../duration.ts';
import { suggest } from '../nearest.ts';
import type { Path } from '../path.ts';
import type { Config, Reconciliation, Repair } from '../schema.ts';
import { HTTP, hasScheme, POSTGRES } from './address.ts';
import { checkActionTemplates, checkIdempotency } from './template.ts';

type Kind = 'missing' | 'mismatched' | 'extra';

export function checkRepairs(
  config: Config,
  path: Path,
  reconciliation: Reconciliation,
): readonly CrossProblem[] {
  return (['missing', 'mismatched', 'extra'] as const).flatMap((kind) => {
    const repair = reconciliation.repair[kind];
    const at = [...path, 'repair', kind];
    if (repair === 'report') return [];
    if (!Array.isArray(repair)) return checkRepair(config, path, at, kind, reconciliation, repair);
    return [
      ...checkOrder(at, repair),
      ...repair.flatMap((one, index) => checkRepair(config, path, [...at, index], kind, reconciliation, one)),
    ];
  });
}

/** The first repair whose `when` holds is taken. */
function checkOrder(at: Path, repairs: readonly Repair[]): CrossProblem[] {
  const open = repairs.findIndex((repair) => repair.when === undefined);
  if (open < 0 || open === repairs.length - 1) return [];
  return [
    {
      path: [...at, open],
      predicate: 'has no when, so the repairs after it are never used',
      hint: 'add when, or move it to the end',
      reads: [[...at, open, 'when']],
    },
  ];
}

function checkRepair(
  config: Config,
  path: Path,
  at: Path,
  kind: Kind,
  reconciliation: Reconciliation,
  repair: Repair,
): CrossProblem[] {
  return [
    ...checkWhen(path, at, reconciliation, repair),
    ...checkTarget(config, at, repair),
    ...checkDelete(at, repair),
    ...checkVerify(config, path, at, reconciliation, repair),
    ...checkIdempotency(path, at, kind, reconciliation, repair),
    ...checkActionTemplates(path, at, kind, reconciliation, repair),
  ];
}

function checkWhen(path: Path, at: Path, reconciliation: Reconciliation, repair: Repair): CrossProblem[] {
  const compared = Object.keys(reconciliation.compare);
  return Object.keys(repair.when ?? {})
    .filter((field) => !compared.includes(field))
    .map((field) => ({
      path: [...at, 'when', field],
      predicate: 'is no compared field',
      hint: suggest(field, compared, 'compared fields'),
      reads: [[...path, 'compare']],
    }));
}

function checkTarget(config: Config, at: Path, repair: Repair): CrossProblem[] {
  const here = [...at, 'target'];
  const target = Object.hasOwn(config.targets, repair.target) ? config.targets[repair.target] : undefined;
  const reads = [
    ['targets', repair.target],
    [...at, 'action', 'type'],
  ];
  if (target === undefined)
    return [
      {
        path: here,
        predicate: 'is no target',
        hint: suggest(repair.target, Object.keys(config.targets), 'targets'),
        showsValue: true,
        reads,
      },
    ];
  if (repair.action.type === 'module') return [];
  const schemes = repair.action.type === 'http' ? HTTP : POSTGRES;
  if (target.url !== undefined && hasScheme(target.url, schemes)) return [];
  const wanted = repair.action.type === 'http' ? 'http(s)://' : 'postgres://';
  return [
    {
      path: here,
      predicate: `has no ${wanted} address, which an action of type ${repair.action.type} needs`,
      hint: `set targets.${repair.target}.url`,
      showsValue: true,
      reads,
    },
  ];
}

/** Rule 5.12: what deletes must be asked for. */
function checkDelete(at: Path, repair: Repair): CrossProblem[] {
  const { action } = repair;
  if (repair.allowDelete) return [];
  const field =
    action.type === 'http' && action.method === 'DELETE'
      ? 'method'
      : action.type === 'sql' && deletes(action.statement)
        ? 'statement'
        : undefined;
  if (field === undefined) return [];
  return [
    {
      path: [...at, 'action', field],
      predicate: 'deletes',
      hint: `write allowDelete: true beside the action if that is meant`,
      reads: [[...at, 'allowDelete']],
    },
  ];
}

function deletes(statement: string): boolean {
  const bare = statement.replace(/--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'/g, ' ').trim();
  return /^(delete|truncate)\b/i.test(bare) || /^with\b[\s\S]*\bdelete\s+from\b/i.test(bare);
}

/** Rule 6.10: a look proves nothing before the effect can have become visible. */
function checkVerify(
  config: Config,
  path: Path,
  at: Path,
  reconciliation: Reconciliation,
  repair: Repair,
): CrossProblem[] {
  const { within, every } = repair.verify;
  const target = Object.hasOwn(config.targets, repair.target) ? config.targets[repair.target] : undefined;
  const lag = reconciliation[repair.side].readLag;
  const visible = (target?.appliesWithin ?? 0) + lag;
  const here = [...at, 'verify', 'within'];
  const reads = [
    ['targets', repair.target, 'appliesWithin'],
    [...path, repair.side],
    [...at, 'verify'],
  ];
  const problems: CrossProblem[] = [];
  if (within <= visible)
    problems.push({
      path: here,
      predicate: `is ${formatDuration(within)}; a send may take ${formatDuration(visible)} to become visible (the target’s appliesWithin and the ${repair.side}’s readLag)`,
      hint: `write more than ${formatDuration(visible)}`,
      reads,
    });
  if (every > within)
    problems.push({
      path: [...at, 'verify', 'every'],
      predicate: `is longer than verify.within`,
      hint: `write at most ${formatDuration(within)}`,
      reads,
    });
  return problems;
}
