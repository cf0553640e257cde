import { ESCALATES, isTerminal, STATES, TRANSITIONS } from './state.ts';

/** `docs/state-table.md`: the state machine as tables, made from the code so that it cannot be out of date. */
export function stateTable(): string {
  const events = [...new Set(STATES.flatMap((state) => Object.keys(TRANSITIONS[state])))].sort();
  const live = STATES.filter((state) => !isTerminal(state));
  const rows = events.map((event) => {
    const cells = live.map((state) => new Map(Object.entries(TRANSITIONS[state])).get(event) ?? '');
    return `| \`${event}\` | ${cells.join(' | ')} |`;
  });
  const reasons = live.flatMap((state) => {
    const allowed = ESCALATES[state] ?? [];
    return allowed.length === 0 ? [] : [`| ${state} | ${allowed.join(', ')} |`];
  });
  return [
    '# States of a compensation',
    '',
    'Made by `stateTable()` from `src/compensate/state.ts`; a test compares the two, and another compares the code with',
    'the table `compensation_transition` in the store. An empty cell is an illegal change.',
    '',
    `| event | ${live.join(' | ')} |`,
    `| --- | ${live.map(() => '---').join(' | ')} |`,
    ...rows,
    '',
    `Ended, and never left again: ${STATES.filter(isTerminal).join(', ')}.`,
    '',
    'A person is reached only from these states and for these reasons:',
    '',
    '| state | reasons |',
    '| --- | --- |',
    ...reasons,
    '',
  ].join('\n');
}
