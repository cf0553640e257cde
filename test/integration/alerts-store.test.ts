import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { evaluateAlerts } from '../../src/alert/evaluate-alerts.ts';
import { refreshAlerts } from '../../src/alert/outbox.ts';
import { countConditions } from '../../src/store/alert-conditions.ts';
import { describeCondition } from '../../src/store/alert-facts.ts';
import {
  type ClaimedMessage,
  claimMessages,
  recordFailure,
  recordSent,
  releaseMessages,
} from '../../src/store/alert-messages.ts';
import type { Condition } from '../../src/store/alert-state.ts';
import { openAlerts } from '../../src/store/alerts.ts';
import { type Db, inTransaction, openDatabase } from '../../src/store/database.ts';
import { createStore, type TestDatabase } from '../support/database.ts';
import { storeDiff, storeRun } from '../support/stored-diff.ts';

const ALERTS = {
  warning: ['chat'],
  action: ['chat', 'pager'],
  repeat: 14_400_000,
  link: 'https://trueup.example/',
};
let store: TestDatabase;
let db: Db;

beforeEach(async () => {
  store = await createStore();
  db = openDatabase(store.url, { applicationName: 'alerts-store.test' });
});

afterEach(async () => {
  await db.destroy();
  await store.drop();
});

const refresh = () => inTransaction(db, (trx) => refreshAlerts(trx, ALERTS));
const claimOne = (channel: string, leaseMs = 30_000) => claimMessages(db, channel, () => 1, leaseMs);
const claimAll = (channel: string) => claimMessages(db, channel, (load) => load.waiting, 30_000);

async function conditions(): Promise<Condition[]> {
  const found: Condition[] = [];
  for (const counted of await countConditions(db)) found.push(await describeCondition(db, counted));
  return found;
}

async function messages(): Promise<{ channel: string; state: string; title: string }[]> {
  const { rows } = await db.raw(
    `select channel, state, message ->> 'title' as title from alert_message order by id`,
  );
  return rows;
}

/** As if the time of all leases and back-offs had passed. */
async function passTime(): Promise<void> {
  await db.raw(
    `update alert_message set due_at = clock_timestamp(), lease_until = clock_timestamp() - interval '2 minutes'
      where state = 'waiting' and attempts > 0`,
  );
}

function only<T>(rows: readonly T[]): T {
  const [row] = rows;
  if (row === undefined || rows.length !== 1) throw new Error(`expected one, got ${rows.length}`);
  return row;
}

describe('evaluating by timer', () => {
  test('is done by one process, and not again before its pause is over', async () => {
    await storeDiff(db, { reconciliation: 'orders', key: ['O-1'] });
    const statements: string[] = [];
    db.on('query', ({ sql }: { sql: string }) => statements.push(sql));
    const rounds = await Promise.all([1, 2, 3, 4].map(() => evaluateAlerts(db, ALERTS)));
    expect(rounds.filter(Boolean)).toHaveLength(1);
    expect(statements.filter((sql) => sql.includes('from diff'))).toHaveLength(2);
    expect(await messages()).toHaveLength(1);
    expect(await evaluateAlerts(db, ALERTS)).toBe(false);
    await db('upkeep').update({ next_at: db.fn.now() });
    expect(await evaluateAlerts(db, ALERTS)).toBe(true);
  });

  test('goes on elsewhere when the one whose turn it was failed', async () => {
    await storeDiff(db, { reconciliation: 'orders', key: ['O-1'] });
    await db.raw('alter table alert rename to away');
    await expect(evaluateAlerts(db, ALERTS)).rejects.toThrow('does not exist');
    await db.raw('alter table away rename to alert');
    await db.raw(`update upkeep set next_at = next_at - interval '2 seconds'`);
    expect(await evaluateAlerts(db, ALERTS)).toBe(true);
    expect(await messages()).toHaveLength(1);
  });
});

describe('the outbox', () => {
  test('an alert opens, is silent, and recovers, each told once to its channels', async () => {
    const id = await storeDiff(db, { reconciliation: 'orders', key: ['O-1'] });
    await refresh();
    await refresh();
    expect(await messages()).toEqual([{ channel: 'chat', state: 'waiting', title: 'orders: 1 diff found' }]);
    await db('diff').where({ id }).update({ state: 'healed', closed_at: db.fn.now() });
    await refresh();
    await refresh();
    expect((await messages()).map(({ title }) => title)).toEqual([
      'orders: 1 diff found',
      'orders: no diff is open any more',
    ]);
    expect(await openAlerts(db)).toEqual([]);
  });

  test('one message goes to every channel of its severity under one id', async () => {
    await storeRun(db, { reconciliation: 'orders', phase: 'held' });
    await refresh();
    const [chat, pager] = [only(await claimOne('chat')), only(await claimOne('pager'))];
    expect(chat.message).toEqual(pager.message);
    expect(chat.message).toMatchObject({
      id: expect.stringMatching(/^msg_/),
      link: 'https://trueup.example/',
    });
    expect(chat.message.alertId).toBe(only(await openAlerts(db)).id);
  });

  test('two processes that find the same trouble at once tell it once', async () => {
    await storeDiff(db, { reconciliation: 'orders', key: ['O-1'] });
    await Promise.all([refresh(), refresh(), refresh()]);
    expect(await messages()).toHaveLength(1);
    await db('alert').update({ notified_at: db.raw(`notified_at - interval '5 hours'`) });
    await Promise.all([refresh(), refresh(), refresh()]);
    expect(await messages()).toHaveLength(2);
  });

  test('a state change that is rolled back leaves no message', async () => {
    const failure = new Error('crash before the commit');
    const change = inTransaction(db, async (trx) => {
      await storeDiff(trx, { reconciliation: 'orders', key: ['O-1'] });
      await refreshAlerts(trx, ALERTS);
      throw failure;
    });
    await expect(change).rejects.toBe(failure);
    expect(await messages()).toEqual([]);
    expect(await openAlerts(db)).toEqual([]);
  });
});

describe('claiming', () => {
  beforeEach(async () => {
    await storeDiff(db, { reconciliation: 'orders', key: ['O-1'] });
    await storeDiff(db, { reconciliation: 'refunds', key: ['R-1'] });
    await refresh();
  });

  test('a message has one holder, and its channel none besides', async () => {
    const claims = await Promise.all([claimOne('chat'), claimOne('chat'), claimOne('chat')]);
    expect(claims.flat()).toHaveLength(1);
    expect(await claimOne('chat')).toEqual([]);
  });

  test('a lease that ran out lets the next worker send the same message', async () => {
    const first = only(await claimOne('chat'));
    await passTime();
    const again = only(await claimOne('chat'));
    expect(again.message).toEqual(first.message);
    expect(again.attempts).toBe(2);
  });

  test('what the first holder records after its lease ran out changes nothing for the second', async () => {
    const first = await claimOne('chat');
    await passTime();
    const second = only(await claimOne('chat'));
    await recordFailure(db, first, { reason: 'late', dueInMs: 60_000 });
    await releaseMessages(db, first);
    const row = await db('alert_message').where({ id: second.id }).first('attempts', 'error');
    expect(row).toEqual({ attempts: 2, error: null });
    expect(await claimOne('chat')).toEqual([]);
  });

  test('a failed message holds back the ones behind it until it is due', async () => {
    const first = await claimOne('chat');
    await recordFailure(db, first, { reason: 'away\u0000', dueInMs: 60_000 });
    expect(await claimOne('chat')).toEqual([]);
    await passTime();
    expect((await claimOne('chat')).map(({ id }) => id)).toEqual(first.map(({ id }) => id));
  });

  test('a message that is refused for good holds back nobody', async () => {
    const first = await claimOne('chat');
    await recordFailure(db, first, { reason: '410', dueInMs: null });
    const next = only(await claimOne('chat'));
    expect(next.id).not.toBe(only(first).id);
  });

  test('a released message is due at once and its try is not counted', async () => {
    await releaseMessages(db, await claimOne('chat'));
    expect(only(await claimOne('chat')).attempts).toBe(1);
  });

  test('the load counts a digest as one send and a failed try as one', async () => {
    const loads: unknown[] = [];
    const look = () =>
      claimMessages(
        db,
        'chat',
        (load) => {
          loads.push(load);
          return 0;
        },
        30_000,
      );
    await look();
    await recordSent(db, await claimAll('chat'));
    await look();
    await storeDiff(db, { reconciliation: 'payouts', key: ['P-1'] });
    await refresh();
    await recordFailure(db, await claimOne('chat'), { reason: 'away', dueInMs: 0 });
    await look();
    expect(loads).toEqual([
      { waiting: 2, headAttempts: 0, recentSends: 0 },
      { waiting: 0, headAttempts: 0, recentSends: 1 },
      { waiting: 1, headAttempts: 1, recentSends: 2 },
    ]);
  });
});

describe('a channel that fails', () => {
  async function failTimes(channel: string, times: number): Promise<void> {
    for (let n = 0; n < times; n++) {
      const claimed: ClaimedMessage[] = await claimOne(channel);
      expect(claimed).toHaveLength(1);
      await recordFailure(db, claimed, { reason: 'errcode 310000: sign not match', dueInMs: 0 });
    }
  }

  test('is reported through the next channel after five tries, and its recovery too', async () => {
    await storeDiff(db, { reconciliation: 'orders', key: ['O-1'] });
    await refresh();
    await failTimes('chat', 4);
    await refresh();
    expect((await messages()).filter(({ channel }) => channel === 'pager')).toEqual([]);
    await failTimes('chat', 1);
    await refresh();
    const report = only(await claimOne('pager'));
    expect(report.message).toMatchObject({
      kind: 'channel-failing',
      reconciliation: 'chat',
      title: 'alert channel chat: 1 message not delivered',
      samples: [{ key: 'orders: 1 diff found', text: 'errcode 310000: sign not match' }],
    });
    await recordSent(db, [report]);
    await recordSent(db, await claimOne('chat'));
    await refresh();
    expect(only(await claimOne('pager')).message.title).toBe('alert channel chat: delivers again');
  });

  test('is reported at once when it refuses for good, until it takes a message again', async () => {
    await storeDiff(db, { reconciliation: 'orders', key: ['O-1'] });
    await refresh();
    await recordFailure(db, await claimOne('chat'), { reason: '410', dueInMs: null });
    expect((await conditions()).map(({ kind }) => kind)).toContain('channel-failing');
    await storeDiff(db, { reconciliation: 'refunds', key: ['R-1'] });
    await refresh();
    await recordSent(db, await claimOne('chat'));
    expect((await conditions()).map(({ kind }) => kind)).not.toContain('channel-failing');
  });
});
