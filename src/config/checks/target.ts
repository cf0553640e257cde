import type { CrossProblem } from '../cross-problem.ts';
import { formatDuration } from '../duration.ts';
import type { Path } from '../path.ts';
import type { Target } from '../schema.ts';
import { checkAddress, HTTP, POSTGRES } from './address.ts';

export function checkTargetPolicy(path: Path, target: Target): readonly CrossProblem[] {
  const problems = checkAddress([...path, 'url'], target.url, [...HTTP, ...POSTGRES]);
  const { base, cap } = target.retry.wait;
  const wait = [...path, 'retry', 'wait'];
  if (base > cap)
    problems.push({
      path: [...wait, 'base'],
      predicate: `is longer than the cap of ${formatDuration(cap)}`,
      hint: 'write a shorter base or a longer cap',
      reads: [[...wait, 'cap']],
    });
  if (target.maxSlow < target.timeout.answer)
    problems.push({
      path: [...path, 'maxSlow'],
      predicate: `is shorter than timeout.answer (${formatDuration(target.timeout.answer)}), so a slow first attempt is never retried`,
      hint: `write at least ${formatDuration(target.timeout.answer)}`,
      reads: [[...path, 'timeout', 'answer']],
    });
  return problems;
}
