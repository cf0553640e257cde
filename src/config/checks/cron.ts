import { CronExpressionParser } from 'cron-parser';
import type { CrossProblem } from '../cross-problem.ts';
import type { Path } from '../path.ts';

const WORD = /^(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)$/i;
const FORM = 'write five fields, minute hour day-of-month month day-of-week: "*/15 * * * *"';

/**
 * A schedule is five plain fields. The library would also take an empty text (every minute), seconds, `@daily`, and
 * `H`, `L`, `W`, `#` and `?`, which mean something else in every program that has them.
 */
export function checkCron(path: Path, cron: string): CrossProblem[] {
  const problem = (predicate: string, hint: string): CrossProblem[] => [
    { path, predicate, hint, showsValue: true },
  ];
  const fields = cron.trim() === '' ? [] : cron.trim().split(/\s+/);
  if (cron.trim().startsWith('@')) return problem('is a nickname, not five fields', FORM);
  if (fields.length !== 5) return problem(`has ${fields.length} of five fields`, FORM);
  const strange = fields.flatMap((field) => field.split(/[,/-]/)).find((part) => !isPlain(part));
  if (strange !== undefined)
    return problem(
      `uses "${strange}", which is not part of a cron pattern here`,
      'use numbers, names such as mon or jan, and * , - /',
    );
  try {
    // It also refuses days that none of the months has.
    CronExpressionParser.parse(cron);
    return [];
  } catch (error) {
    return problem('is no cron pattern', error instanceof Error ? error.message : FORM);
  }
}

function isPlain(part: string): boolean {
  return part === '*' || /^\d+$/.test(part) || WORD.test(part);
}
