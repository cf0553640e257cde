import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  type CompensationEvent,
  ESCALATES,
  ESCALATION_REASONS,
  IllegalTransition,
  isTerminal,
  STATES,
  type StateName,
  TRANSITIONS,
  transition,
} from '../../../src/compensate/state.ts';
import { stateTable } from '../../../src/compensate/state-table.ts';

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

const EVENTS = [
  ...new Set(STATES.flatMap((state) => Object.keys(TRANSITIONS[state]))),
] as CompensationEvent['type'][];

const eventsOf = (type: CompensationEvent['type']): CompensationEvent[] =>
  type === 'escalate'
    ? ESCALATION_REASONS.map((reason) => ({ type, reason }))
    : [{ type } as CompensationEvent];

function tried(state: StateName, event: CompensationEvent): string {
  try {
    return transition(state, event).name;
  } catch (error) {
    if (error instanceof IllegalTransition) return 'illegal';
    throw error;
  }
}

describe('the state machine', () => {
  it('knows every event of the type', () => {
    expect(EVENTS.toSorted()).toEqual(
      [
        'accepted',
        'ambiguous',
        'cancel',
        'defer',
        'dispatch',
        'escalate',
        'hold',
        'look-changed',
        'look-equal',
        'put-back',
        'release',
        'replaced',
        'resend',
        'retry',
        'seen',
        'send',
        'slot-dropped',
        'turn',
      ].toSorted(),
    );
  });

  for (const state of STATES) {
    it(`answers every event in "${state}" as its table says, and nothing else`, () => {
      for (const type of EVENTS) {
        for (const event of eventsOf(type)) {
          const cell = TRANSITIONS[state][type];
          const allowed = event.type !== 'escalate' || (ESCALATES[state] ?? []).includes(event.reason);
          expect(tried(state, event), `${state} x ${type}`).toBe(
            cell !== undefined && allowed ? cell : 'illegal',
          );
        }
      }
    });
  }

  it('never leaves an ended state', () => {
    const ended = STATES.filter(isTerminal);
    expect(ended).toEqual(['verified', 'healed', 'cancelled', 'superseded', 'escalated']);
    for (const state of ended)
      for (const type of EVENTS)
        for (const event of eventsOf(type)) expect(tried(state, event)).toBe('illegal');
  });

  it('reaches every state, and an ended one from every state', () => {
    const next = (state: StateName) => Object.values(TRANSITIONS[state]) as StateName[];
    const reachable = (from: StateName) => {
      const seen = new Set([from]);
      for (const state of seen) for (const after of next(state)) seen.add(after);
      return seen;
    };
    expect([...reachable('planned')].toSorted()).toEqual(STATES.toSorted());
    for (const state of STATES) expect([...reachable(state)].some(isTerminal), state).toBe(true);
  });

  it('reaches a person only where a reason is listed (rule 6.7)', () => {
    for (const state of STATES) {
      const reachesPerson = Object.entries(TRANSITIONS[state]).filter(([, after]) => after === 'escalated');
      expect(reachesPerson.map(([event]) => event)).toEqual(
        ESCALATES[state] === undefined ? [] : ['escalate'],
      );
    }
    // What waits is given up with its target and for nothing else; a refusal or spent retries are only known right
    // after a send; what a person holds reaches nobody.
    expect(ESCALATES.held).toBeUndefined();
    for (const state of ['ready', 'retrying', 'deferred'] as const)
      expect(ESCALATES[state]).toEqual(['gave-up']);
    expect(STATES.filter((state) => ESCALATES[state]?.includes('unreadable'))).toEqual([
      'queued',
      'unknown',
      'applied',
    ]);
    expect(STATES.filter((state) => ESCALATES[state]?.includes('exhausted'))).toEqual(['sending']);
    expect(STATES.filter((state) => ESCALATES[state]?.includes('refused'))).toEqual(['sending']);
    expect(STATES.filter((state) => ESCALATES[state]?.includes('unresolved'))).toEqual(['queued', 'unknown']);
    expect(STATES.filter((state) => ESCALATES[state]?.includes('not-taken'))).toEqual(['applied']);
  });

  it('lists every reason somewhere', () => {
    expect([...new Set(Object.values(ESCALATES).flat())].toSorted()).toEqual(ESCALATION_REASONS.toSorted());
  });
});

describe('copies of the table', () => {
  it('has the same rows in the store as in the code', () => {
    const sql = ['0001_store', '0002_compensation_path'].map((name) => read(`migrations/${name}.up.sql`));
    const inserts = sql.flatMap((text) => text.match(/insert into compensation_transition[^;]*;/g) ?? []);
    const rows = [...inserts.join('').matchAll(/\('([a-z]+)', '([a-z]+)'\)/g)].map(
      ([, before, after]) => `${before} > ${after}`,
    );
    const cells = STATES.flatMap((state) =>
      Object.values(TRANSITIONS[state]).map((after) => `${state} > ${after}`),
    );
    expect(rows.toSorted()).toEqual([...new Set(cells)].toSorted());
  });

  it('has the states of the code in the column’s check', () => {
    const sql = read('migrations/0001_store.up.sql');
    const check = /state in \('planned'[^)]*\)/.exec(sql)?.[0] ?? '';
    expect([...check.matchAll(/'([a-z]+)'/g)].map(([, name]) => name)).toEqual([...STATES]);
  });

  it('is printed in docs/state-table.md as it is (write stateTable() there after a change)', () => {
    expect(read('docs/state-table.md')).toBe(stateTable());
  });
});
