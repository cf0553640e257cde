import { checkAddress, POSTGRES, QUEUE } from './checks/address.ts';
import { checkAlerts } from './checks/alerts.ts';
import { checkCompare } from './checks/compare.ts';
import { checkPositive } from './checks/positive.ts';
import { checkRepairs } from './checks/repair.ts';
import { checkSchedule } from './checks/schedule.ts';
import { checkSide } from './checks/side.ts';
import { checkTargetPolicy } from './checks/target.ts';
import { checkSourceField } from './checks/template.ts';
import { checkZone } from './checks/zone.ts';
import type { CrossProblem } from './cross-problem.ts';
import { type Path, valueAt } from './path.ts';
import type { Config, Reconciliation } from './schema.ts';

/**
 * Everything that is wrong between the fields of a config whose shape is right. `written` is the document it was
 * parsed from, for the places where a short form and a long form have different paths.
 */
export function validate(config: Config, written: unknown): readonly CrossProblem[] {
  return [
    ...checkZone(['timezone'], config.timezone),
    ...checkAddress(['store', 'url'], config.store.url, POSTGRES),
    ...checkQueue(config),
    ...Object.entries(config.targets).flatMap(([name, target]) =>
      checkTargetPolicy(['targets', name], target),
    ),
    ...Object.entries(config.reconciliations).flatMap(([name, reconciliation]) =>
      checkReconciliation(config, ['reconciliations', name], reconciliation, written),
    ),
    ...checkAlerts(config),
    ...checkPositive(config),
  ];
}

function checkQueue({ queue }: Config): readonly CrossProblem[] {
  const problems = checkAddress(['queue', 'url'], queue.url, QUEUE);
  if (queue.sentinel !== undefined && queue.cluster !== undefined)
    problems.push({ path: ['queue'], predicate: 'has both sentinel and cluster', hint: 'keep one of them' });
  return problems;
}

function checkReconciliation(
  config: Config,
  path: Path,
  reconciliation: Reconciliation,
  written: unknown,
): readonly CrossProblem[] {
  const sourceFields = (['businessDate', 'traceId'] as const).flatMap((option) => {
    const field = reconciliation[option];
    return field === undefined ? [] : checkSourceField(path, [...path, option], field, reconciliation);
  });
  return [
    ...checkRepeatedKey(path, reconciliation.key),
    ...checkSchedule(path, reconciliation, valueAt(written, [...path, 'schedule'])),
    ...checkSide(config, [...path, 'source'], reconciliation.source, reconciliation.key),
    ...checkSide(config, [...path, 'downstream'], reconciliation.downstream, reconciliation.key),
    ...checkCompare(path, reconciliation),
    ...sourceFields,
    ...checkRepairs(config, path, reconciliation),
  ];
}

function checkRepeatedKey(path: Path, key: readonly string[]): readonly CrossProblem[] {
  const repeated = key.findIndex((name, at) => key.indexOf(name) !== at);
  if (repeated < 0) return [];
  return [
    { path: [...path, 'key', repeated], predicate: 'is named twice', hint: 'remove one', showsValue: true },
  ];
}
