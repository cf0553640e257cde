import { describe, expect, test } from 'vitest';
import { recordAudit } from '../../../src/store/audit.ts';
import { insertCompensation, insertDiff, insertRun, insertSuspect } from './rows.ts';
import { storeForFile } from './store.ts';

const store = storeForFile();
let names = 0;
function name(): string {
  names += 1;
  return `constraint-${names}`;
}

describe('a diff', () => {
  test('is open once per reconciliation and key', async () => {
    const orders = name();
    const first = await insertDiff(store.db, orders);
    await expect(insertDiff(store.db, orders)).rejects.toThrow('diff_one_open');
    await expect(insertDiff(store.db, orders, { state: 'failed' })).rejects.toThrow('diff_one_open');
    await insertDiff(store.db, orders, { business_key: '["A-2"]' });
    await insertDiff(store.db, name());
    await store
      .db('diff')
      .where({ id: first })
      .update({ state: 'healed', closed_at: store.db.raw('now()') });
    await insertDiff(store.db, orders);
  });

  test('is closed exactly when it has a time of closing', async () => {
    await expect(insertDiff(store.db, name(), { state: 'verified' })).rejects.toThrow('check constraint');
    await expect(
      insertDiff(store.db, name(), { state: 'open', closed_at: store.db.raw('now()') }),
    ).rejects.toThrow('check constraint');
  });
});

describe('a compensation', () => {
  async function ledger(reconciliation: string) {
    const diffId = await insertDiff(store.db, reconciliation);
    return (values: Record<string, unknown>) => insertCompensation(store.db, reconciliation, diffId, values);
  }

  test('has one row per idempotency key and revision', async () => {
    const add = await ledger(name());
    const key = `key-${name()}`;
    await add({ idempotency_key: key });
    await expect(add({ idempotency_key: key })).rejects.toThrow('unique constraint');
    await add({ idempotency_key: key, revision: 1 });
  });

  test.each(['ready', 'queued', 'sending', 'retrying', 'deferred', 'unknown', 'applied'])(
    'that is %s keeps every other one of its key out of the pipe',
    async (state) => {
      const add = await ledger(name());
      await add({ state });
      await expect(add({ state: 'ready' })).rejects.toThrow('compensation_one_in_pipe');
      await add({ state: 'planned' });
      await add({ state: 'held' });
      await add({ state: 'ready', business_key: '["A-2"]' });
      await add({ state: 'ready', target: 'another' });
    },
  );

  test('that was escalated with an unknown last send still keeps the others out', async () => {
    const escalated = { state: 'escalated', escalation: 'unresolved', ended_at: store.db.raw('now()') };
    const blocked = await ledger(name());
    await blocked({ ...escalated, last_unknown: true });
    await expect(blocked({ state: 'ready' })).rejects.toThrow('compensation_one_in_pipe');
    const free = await ledger(name());
    await free({ ...escalated, escalation: 'refused' });
    await free({ state: 'ready' });
  });

  test('cannot change its state in a way the state machine does not know', async () => {
    const add = await ledger(name());
    const id = await add({ state: 'planned' });
    await expect(store.db('compensation').where({ id }).update({ state: 'sending' })).rejects.toThrow(
      `compensation ${id} cannot go from planned to sending`,
    );
    await store.db('compensation').where({ id }).update({ state: 'ready' });
  });

  test('is escalated exactly when it has a reason, and ended exactly when it has a time', async () => {
    const add = await ledger(name());
    await expect(add({ state: 'escalated', ended_at: store.db.raw('now()') })).rejects.toThrow('check');
    await expect(add({ escalation: 'refused' })).rejects.toThrow('check');
    await expect(add({ state: 'verified' })).rejects.toThrow('check');
    await expect(add({ ended_at: store.db.raw('now()') })).rejects.toThrow('check');
  });
});

describe('a run', () => {
  test('is a match only when it is complete', async () => {
    const done = { phase: 'done', verdict: 'match' };
    await expect(insertRun(store.db, name(), { ...done, result: 'incomplete' })).rejects.toThrow('check');
    await insertRun(store.db, name(), { ...done, result: 'complete' });
    await insertRun(store.db, name(), { ...done, verdict: 'undecided', result: 'incomplete' });
  });

  test('is done exactly when it has a result', async () => {
    await expect(insertRun(store.db, name(), { phase: 'done' })).rejects.toThrow('check');
    await expect(insertRun(store.db, name(), { phase: 'held', result: 'complete' })).rejects.toThrow('check');
  });

  test('has a window that ends no earlier than it starts', async () => {
    await expect(insertRun(store.db, name(), { window_to: '2026-11-30T09:00:00Z' })).rejects.toThrow('check');
  });

  test('suspects a key once', async () => {
    const orders = name();
    const run = await insertRun(store.db, orders);
    await insertSuspect(store.db, orders, run);
    await expect(insertSuspect(store.db, orders, run)).rejects.toThrow('unique constraint');
  });
});

describe('the audit', () => {
  test.each(['update audit set actor = ?', 'delete from audit where actor <> ?', 'truncate audit'])(
    'refuses: %s',
    async (sql) => {
      await recordAudit(store.db, {
        actor: 'ann',
        origin: 'cli',
        action: 'dismiss',
        subject: 'diff 1',
        reason: null,
        before: null,
        after: null,
      });
      await expect(store.db.raw(sql, sql.includes('?') ? ['nobody'] : [])).rejects.toThrow(
        'audit is append-only',
      );
    },
  );
});

test('coverage does not move back, whatever writes it', async () => {
  const orders = name();
  await store.db('coverage').insert({ reconciliation: orders, covered_to: '2026-11-30T11:00:00Z' });
  await expect(
    store.db('coverage').where({ reconciliation: orders }).update({ covered_to: '2026-11-30T10:59:59Z' }),
  ).rejects.toThrow(`coverage of ${orders} cannot move back`);
});

test('an alert of a kind is open once per reconciliation', async () => {
  const alert = { reconciliation: name(), kind: 'diffs', severity: 'warning', summary: '{}' };
  await store.db('alert').insert(alert);
  await expect(store.db('alert').insert(alert)).rejects.toThrow('alert_one_open');
  await store.db('alert').insert({ ...alert, state: 'recovered' });
});
