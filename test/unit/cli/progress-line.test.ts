import { expect, it } from 'vitest';
import { progressLine } from '../../../src/cli/progress-line.ts';
import type { RunDetail } from '../../../src/store/list-runs.ts';
import { NO_COUNTS } from '../../../src/store/runs.ts';

const run = (values: Partial<RunDetail>) =>
  ({
    reconciliation: 'payments',
    phase: 'done',
    counts: NO_COUNTS,
    compensations: { planned: 0, open: 0, sent: 0, verified: 0, healed: 0, escalated: 0, byState: {} },
    ...values,
  }) as RunDetail;
const eta = { at: null, text: '4,213 sends at 100 a minute: done about 03:52 (UTC)' };

it('says how far the reading is', () => {
  const counts = { ...NO_COUNTS, source: 12_000 };
  expect(progressLine([run({ phase: 'reading', counts })], [], eta)).toBe('payments: reading, 12000 read');
});

it('says what was found, sent and verified, the rate against its ceiling, and when it is done', () => {
  const counts = { ...NO_COUNTS, missing: 4213, mismatched: 2 };
  const compensations = {
    planned: 4215,
    open: 4113,
    sent: 104,
    verified: 95,
    healed: 2,
    escalated: 1,
    byState: {},
  };
  expect(
    progressLine([run({ counts, compensations })], [{ target: 'gateway', lastMinute: 97, limit: 100 }], eta),
  ).toBe(
    'payments: 4215 found, 104 sent, 95 of 4215 verified, 2 healed, 1 for a person | gateway 97/100 a minute | 4,213 sends at 100 a minute: done about 03:52 (UTC)',
  );
});
