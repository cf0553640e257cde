import { describe, expect, test } from 'vitest';
import { readDiffTimeline } from '../../../src/store/diff-timeline.ts';
import { listDiffs } from '../../../src/store/list-diffs.ts';
import { listRuns, readRun } from '../../../src/store/list-runs.ts';
import { insertAttempt, insertCompensation, insertDiff, insertRun } from './rows.ts';
import { storeForFile } from './store.ts';

const store = storeForFile();

describe('runs', () => {
  test('are listed newest first, page by page', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.unshift(await insertRun(store.db, 'paged'));
    await insertRun(store.db, 'another');
    const first = await listRuns(store.db, { reconciliation: 'paged', limit: 2 });
    expect(first.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    const rest = await listRuns(store.db, { reconciliation: 'paged', limit: 2, before: ids[1] ?? '' });
    expect(rest.map(({ id }) => id)).toEqual(ids.slice(2));
    expect((await listRuns(store.db, { limit: 100 })).length).toBeGreaterThanOrEqual(4);
  });

  test('show their window exactly, and counts that were not stored as 0', async () => {
    const id = await insertRun(store.db, 'shown', {
      window_from: '2026-11-30T10:00:00.000001Z',
      counts: JSON.stringify({ source: 7 }),
    });
    expect(await readRun(store.db, id)).toMatchObject({
      id,
      trigger: 'adhoc',
      phase: 'reading',
      result: null,
      window: { from: '2026-11-30T10:00:00.000001Z', to: '2026-11-30T11:00:00.000000Z' },
      counts: { source: 7, missing: 0 },
      compensations: { planned: 0, open: 0, sent: 0, byState: {} },
      maxSendsIn60s: {},
    });
  });

  test('count what became of their repairs and the most sends in any 60 seconds', async () => {
    const run = await insertRun(store.db, 'counted');
    const ended = { ended_at: store.db.raw('now()') };
    const add = async (key: number, values: Record<string, unknown>) => {
      const business_key = `["C-${key}"]`;
      const diff = await insertDiff(store.db, 'counted', { business_key });
      return insertCompensation(store.db, 'counted', diff, { run_id: run, business_key, ...values });
    };
    const verified = await add(1, { state: 'verified', ...ended });
    const escalated = await add(2, { state: 'escalated', escalation: 'exhausted', ...ended });
    await add(3, { state: 'healed', ...ended });
    await add(4, { state: 'deferred' });
    await add(5, {});

    const slot = (time: string) => ({ slot_at: `2026-11-30T10:${time}Z` });
    await insertAttempt(store.db, verified, 1, { ...slot('00:00.000000'), outcome: 'retryable' });
    await insertAttempt(store.db, verified, 2, { ...slot('00:30'), outcome: 'not-sent' });
    await insertAttempt(store.db, verified, 3, { ...slot('00:59.999999'), outcome: 'accepted' });
    await insertAttempt(store.db, escalated, 1, { ...slot('01:00.000000'), outcome: 'retryable' });
    await insertAttempt(store.db, escalated, 2, {
      ...slot('09:00'),
      outcome: 'retryable',
      started_at: '2026-11-30T10:01:59.999999Z',
    });
    await insertAttempt(store.db, escalated, 3, { ...slot('01:10'), outcome: 'fatal', target: 'shop' });

    expect(await readRun(store.db, run)).toMatchObject({
      compensations: {
        planned: 5,
        open: 2,
        sent: 5,
        verified: 1,
        healed: 1,
        escalated: 1,
        byState: { verified: 1, healed: 1, escalated: 1, deferred: 1, planned: 1 },
      },
      maxSendsIn60s: { warehouse: 2, shop: 1 },
    });
  });

  test('an unknown id is nothing, and text that is no id is refused', async () => {
    expect(await readRun(store.db, '999999999')).toBeNull();
    await expect(readRun(store.db, '1; drop')).rejects.toMatchObject({ code: 'TRU_NO_ID', exit: 2 });
  });
});

describe('diffs', () => {
  test('are found by every filter, with the newest compensation beside them', async () => {
    const run = await insertRun(store.db, 'found');
    const plain = await insertDiff(store.db, 'found', { business_key: '["F-1","EUR"]', run_id: run });
    const escalated = await insertDiff(store.db, 'found', { business_key: '["F-2"]', kind: 'mismatched' });
    const closed = await insertDiff(store.db, 'found', {
      business_key: '["F-3"]',
      state: 'dismissed',
      closed_at: store.db.raw('now()'),
      closed_by: 'ann',
    });
    const ended = { ended_at: store.db.raw('now()') };
    await insertCompensation(store.db, 'found', escalated, { state: 'healed', ...ended });
    const newest = await insertCompensation(store.db, 'found', escalated, {
      state: 'escalated',
      escalation: 'refused',
      escalation_detail: 'http-422',
      attempts: 1,
      ...ended,
    });
    const find = async (filters: Parameters<typeof listDiffs>[1], limit = 10, after?: string) =>
      (
        await listDiffs(
          store.db,
          { reconciliation: 'found', ...filters },
          { limit, ...(after === undefined ? {} : { after }) },
        )
      ).map(({ id }) => id);

    expect(await find({})).toEqual([closed, escalated, plain]);
    expect(await find({}, 2)).toEqual([closed, escalated]);
    expect(await find({}, 2, escalated)).toEqual([plain]);
    expect(await find({ states: ['open', 'failed'] })).toEqual([escalated, plain]);
    expect(await find({ states: [] })).toEqual([]);
    expect(await find({ kinds: ['mismatched'] })).toEqual([escalated]);
    expect(await find({ key: ['F-1', 'EUR'] })).toEqual([plain]);
    expect(await find({ runId: run })).toEqual([plain]);
    expect(await find({ escalation: 'refused' })).toEqual([escalated]);
    expect(await find({ escalation: 'flapping' })).toEqual([]);

    const [listed] = await listDiffs(store.db, { key: ['F-2'] }, { limit: 1 });
    expect(listed).toMatchObject({
      key: ['F-2'],
      compensation: {
        id: newest,
        state: 'escalated',
        escalation: 'refused',
        detail: 'http-422',
        attempts: 1,
      },
    });
    const [bare] = await listDiffs(store.db, { key: ['F-1', 'EUR'] }, { limit: 1 });
    expect(bare?.compensation).toBeNull();
  });

  test('a diff is told whole, in the order of time, with earlier diffs of its key', async () => {
    const earlier = await insertDiff(store.db, 'told', {
      state: 'verified',
      closed_at: '2026-11-29T10:00:00Z',
      closed_by: 'trueup',
    });
    const record = { key: ['A-1'], time: null, fields: {} };
    const diff = await insertDiff(store.db, 'told', { source_record: JSON.stringify(record) });
    const at = (time: string) => `2026-11-30T10:00:${time}Z`;
    await store.db('diff_event').insert([
      { diff_id: diff, event: 'opened', at: at('00.000001'), detail: '{"run": "7"}' },
      // As an earlier release named it.
      { diff_id: diff, event: 'escalate', at: at('08'), detail: '{}' },
      { diff_id: diff, event: 'dismissed', at: at('09'), detail: '{}' },
    ]);
    const compensation = await insertCompensation(store.db, 'told', diff, {
      state: 'unknown',
      created_at: at('00.000002'),
    });
    const error = { name: 'Error', message: 'reset', code: 'ECONNRESET', stack: 's', cause: null };
    await insertAttempt(store.db, compensation, 1, {
      slot_at: at('02'),
      started_at: at('02.000100'),
      outcome: 'unknown',
      error_code: 'ECONNRESET',
      error: JSON.stringify(error),
      system: '{"breaker": "closed"}',
      request: '{"method": "POST"}',
    });
    await insertAttempt(store.db, compensation, 2, { slot_at: at('05') });

    const told = await readDiffTimeline(store.db, diff);
    expect(told?.diff).toMatchObject({ id: diff, source: record, downstream: null, state: 'open' });
    expect(told?.compensations).toMatchObject([{ id: compensation, state: 'unknown', repair: 'missing' }]);
    expect(told?.timeline).toMatchObject([
      { entry: 'event', event: 'opened', at: at('00.000001'), detail: { run: '7' } },
      { entry: 'planned', compensationId: compensation },
      {
        entry: 'attempt',
        number: 1,
        at: at('02.000100'),
        outcome: 'unknown',
        error,
        system: { breaker: 'closed' },
      },
      { entry: 'attempt', number: 2, outcome: null, endedAt: null },
      { entry: 'event', event: 'escalated' },
      { entry: 'event', event: 'dismissed' },
    ]);
    expect(told?.previous).toMatchObject([{ id: earlier, state: 'verified', closedBy: 'trueup' }]);
    expect(await readDiffTimeline(store.db, '999999999')).toBeNull();
  });
});
