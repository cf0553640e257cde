import { describe, expect, test } from 'vitest';
import { nextAlerts } from '../../../src/alert/policy.ts';
import { addMillis, instantFromMillis } from '../../../src/reconcile/instant.ts';
import type { Condition, OpenAlert } from '../../../src/store/alert-state.ts';

const START = instantFromMillis(Date.UTC(2026, 10, 30));
const HOUR = 3_600_000;

function condition(changes: Partial<Condition> = {}): Condition {
  const facts = { oldest: START, samples: [], dominantError: null, detail: null };
  return { reconciliation: 'orders', kind: 'diffs', severity: 'warning', count: 20, facts, ...changes };
}

function alert(changes: Partial<OpenAlert> = {}): OpenAlert {
  const told = { openedAt: START, notifiedAt: START, notifiedCount: 20 };
  return { id: '1', reconciliation: 'orders', kind: 'diffs', severity: 'warning', ...told, ...changes };
}

const decide = (conditions: Condition[], open: OpenAlert[], afterMs = 0) =>
  nextAlerts(conditions, open, { now: addMillis(START, afterMs), repeatMs: 4 * HOUR });

describe('nextAlerts', () => {
  test('2,000 diffs of one reconciliation open one alert', () => {
    const found = condition({ count: 2000 });
    expect(decide([found], [])).toEqual({ open: [found], notify: [], recover: [] });
  });

  test('an open alert whose count is a little higher says nothing', () => {
    expect(decide([condition({ count: 199 })], [alert()], HOUR)).toEqual({
      open: [],
      notify: [],
      recover: [],
    });
  });

  test('an alert is told again when its count is ten times the one last told', () => {
    const grown = condition({ count: 200 });
    expect(decide([grown], [alert()]).notify).toEqual([{ alert: alert(), condition: grown }]);
  });

  test('an alert is told again once the repeat interval has passed, and not a moment before', () => {
    expect(decide([condition()], [alert()], 4 * HOUR - 1).notify).toEqual([]);
    expect(decide([condition()], [alert()], 4 * HOUR).notify).toHaveLength(1);
  });

  test('an alert that was never told is told', () => {
    expect(decide([condition()], [alert({ notifiedAt: null })]).notify).toHaveLength(1);
  });

  test('an alert without its condition recovers', () => {
    expect(decide([], [alert()])).toEqual({ open: [], notify: [], recover: [alert()] });
  });

  test('the same kind of two reconciliations, and two kinds of one, are alerts of their own', () => {
    const refunds = condition({ reconciliation: 'refunds' });
    const escalated = condition({ kind: 'escalated', severity: 'action' });
    const next = decide([condition(), refunds, escalated], [alert()]);
    expect(next.open).toEqual([refunds, escalated]);
    expect(next.recover).toEqual([]);
  });

  test('names that look alike when joined are kept apart', () => {
    const next = decide([condition({ reconciliation: 'a-diffs' })], [alert({ reconciliation: 'a' })]);
    expect(next.open).toHaveLength(1);
    expect(next.recover).toHaveLength(1);
  });
});
