import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Outcome, Payload, Sender } from '../../src/compensate/action.ts';
import { createSqlSender } from '../../src/compensate/actions/sql.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { sendContext, targetConfig } from '../support/sending.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';

let database: TestDatabase;
let admin: pg.Pool;
const cleanups: (() => Promise<void>)[] = [];

beforeAll(async () => {
  database = await createDatabase();
  admin = new pg.Pool({ connectionString: database.url });
});

afterAll(async () => {
  await admin.end();
  await database.drop();
});

beforeEach(async () => {
  await admin.query(`
    drop table if exists trueup_dedupe, orders, log;
    create table orders (no text primary key, status text not null, amount numeric);
    create table log (no text references orders (no) deferrable initially deferred);
    insert into orders values ('A-1', 'PENDING', 10), ('A-2', 'PENDING', 10)`);
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function sender(url = database.url, target: Partial<Parameters<typeof targetConfig>[0]> = {}): Sender {
  const created = createSqlSender({ targetName: 'ledger', target: targetConfig({ url, ...target }) });
  cleanups.push(() => created.close());
  return created;
}

function insert(no: string, amount: string | null = '12.50'): Payload {
  return {
    type: 'sql',
    statement:
      'insert into orders (no, status, amount) values ($1, $2, $3) returning no, amount, amount * 3 as thrice',
    values: [no, 'PAID', amount],
    expectRows: 1,
  };
}

function statement(text: string, values: readonly (string | null)[] = [], expectRows = 1): Payload {
  return { type: 'sql', statement: text, values, expectRows };
}

async function rows(text: string): Promise<unknown[]> {
  return (await admin.query(text)).rows;
}

const keys = async () => (await rows('select idempotency_key as k from trueup_dedupe')).length;
const key = (idempotencyKey: string) => sendContext({ idempotencyKey });
const summary = ({ class: outcomeClass, code }: Outcome) => `${outcomeClass} ${code}`;

describe('one key has one effect', () => {
  it('commits the effect and its dedupe row together, values as the server writes them', async () => {
    const outcome = await sender().send(insert('B-1', '12345678901234567890.10'), key('k1'));
    expect(summary(outcome)).toBe('accepted committed');
    expect(outcome.answer).toEqual({
      rows: 1,
      returned: [{ no: 'B-1', amount: '12345678901234567890.10', thrice: '37037036703703703670.30' }],
    });
    expect(await rows('select idempotency_key, result, trace_id from trueup_dedupe')).toEqual([
      { idempotency_key: 'k1', result: { rows: 1 }, trace_id: sendContext().traceId },
    ]);
  });

  it('under 8 concurrent sends that also have to create the table', async () => {
    await admin.query('alter table orders drop constraint orders_pkey cascade');
    const senders = Array.from({ length: 8 }, () => sender());
    const outcomes = await Promise.all(senders.map((to) => to.send(insert('B-1'), key('k1'))));
    expect(outcomes.map(summary).sort()).toEqual([
      'accepted committed',
      ...Array(7).fill('accepted deduplicated'),
    ]);
    expect(await rows(`select no from orders where no = 'B-1'`)).toHaveLength(1);
  });

  it('answers a repeated key with the stored result, without running the statement', async () => {
    const to = sender();
    const addOne = statement(`update orders set amount = amount + 1 where no = $1`, ['A-1']);
    await to.send(addOne, key('k1'));
    const again = await to.send(addOne, key('k1'));
    expect(summary(again)).toBe('accepted deduplicated');
    expect(again.answer).toEqual({ rows: 1 });
    expect(await rows(`select amount from orders where no = 'A-1'`)).toEqual([{ amount: '11' }]);
  });

  it('calls the same key with other values a conflict and changes nothing', async () => {
    const to = sender();
    await to.send(insert('B-1'), key('k1'));
    expect(summary(await to.send(insert('B-2'), key('k1')))).toBe('conflict conflict');
    expect(await rows(`select no from orders where no = 'B-2'`)).toEqual([]);
  });

  it('takes the key after the transaction that held it rolled back', async () => {
    const to = sender();
    await to.send(insert('B-1'), key('k0'));
    const other = await admin.connect();
    await other.query('begin');
    await other.query(`insert into trueup_dedupe values ('k1', 'other', '{}')`);
    const sent = to.send(insert('B-2'), key('k1'));
    await until('the send waits for the key', async () => {
      const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      return (await rows(waiting)).length > 0;
    });
    await other.query('rollback');
    other.release();
    expect(summary(await sent)).toBe('accepted committed');
  });
});

describe('what did not commit did nothing', () => {
  it.each([
    ['too many', `update orders set status = 'PAID'`, 2],
    ['none', `update orders set status = 'PAID' where no = 'none'`, 0],
  ])('a statement that touches %s rows is rolled back with its dedupe row', async (_what, text, touched) => {
    const to = sender();
    const outcome = await to.send(statement(text), key('k1'));
    expect(summary(outcome)).toBe(`fatal rows-${touched}-expected-1`);
    expect(await rows(`select no from orders where status = 'PAID'`)).toEqual([]);
    expect(await keys()).toBe(0);
    expect(summary(await to.send(insert('B-1'), key('k1')))).toBe('accepted committed');
  });

  it('a violated constraint is an answer about the record, at once or at the commit', async () => {
    const to = sender();
    const now = await to.send(insert('A-1'), key('k1'));
    expect(now).toMatchObject({ class: 'conflict', error: { code: '23505' } });
    const atCommit = await to.send(statement(`insert into log values ('none')`), key('k2'));
    expect(atCommit).toMatchObject({ class: 'fatal', error: { code: '23503' } });
    expect(await keys()).toBe(0);
  });

  it('several statements are refused by the server, even without values', async () => {
    const outcome = await sender().send(
      statement(`delete from log; update orders set status = 'PAID'`),
      key('k1'),
    );
    expect(outcome).toMatchObject({ class: 'fatal', error: { code: '42601' } });
  });

  it('a backend that is terminated before the commit is no unknown outcome', async () => {
    const to = sender();
    const sleeping = to.send(
      statement(`update orders set status = 'PAID' where pg_sleep(20) is not null`, [], 2),
      key('k1'),
    );
    await until('the statement runs', async () => {
      const cut = `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and query like 'update orders%pg_sleep%' and pid <> pg_backend_pid()`;
      return (await rows(cut)).length > 0;
    });
    const outcome = await sleeping;
    expect(['retryable', 'target-down']).toContain(outcome.class);
    expect(await keys()).toBe(0);
    expect(await rows(`select no from orders where status = 'PAID'`)).toEqual([]);
    expect(summary(await to.send(insert('B-1'), key('k1')))).toBe('accepted committed');
  });

  it('a deadline before the commit ends the statement and is retryable', async () => {
    const to = sender(database.url, { timeout: { answer: '600ms' } });
    await to.send(insert('B-1'), key('k0'));
    const context = sendContext({ idempotencyKey: 'k1', signal: AbortSignal.timeout(300) });
    const outcome = await to.send(statement('select pg_sleep(20)'), context);
    expect(summary(outcome)).toBe('retryable timeout-rolled-back');
    expect(await keys()).toBe(1);
  });

  it('a row that somebody else holds is given up by the server before the deadline', async () => {
    const to = sender(database.url, { timeout: { answer: '600ms' } });
    await to.send(insert('B-1'), key('k0'));
    const other = await admin.connect();
    await other.query(`begin; update orders set status = 'HELD' where no = 'A-1'`);
    const update = statement(`update orders set status = 'PAID' where no = 'A-1'`);
    const outcome = await to.send(update, key('k1'));
    await other.query('rollback');
    other.release();
    expect(outcome).toMatchObject({ class: 'retryable', error: { code: '55P03' } });
    expect(summary(await to.send(update, key('k1')))).toBe('accepted committed');
  });
});

describe('a commit without an answer is unknown', () => {
  it('and the next send of the key tells that it was applied', async () => {
    // The deferred trigger runs within COMMIT and gives the test time to cut the answer off.
    await admin.query(`
      create or replace function slow() returns trigger language plpgsql as 'begin perform pg_sleep(1.5); return null; end';
      drop table if exists slow_orders;
      create table slow_orders (no text);
      create constraint trigger slow after insert on slow_orders deferrable initially deferred
        for each row execute function slow()`);
    const { hostname, port } = new URL(database.url);
    const proxy = await startProxy({ host: hostname, port: Number(port) });
    cleanups.push(() => proxy.close());
    const through = sender(proxy.url(database.url));
    const payload = statement(`insert into slow_orders values ('C-1')`);
    const context = sendContext({ idempotencyKey: 'k1', signal: AbortSignal.timeout(4000) });
    const sent = through.send(payload, context);
    await until('the commit runs', async () => {
      const committing = `select 1 from pg_stat_activity where datname = current_database() and lower(query) = 'commit' and state = 'active'`;
      return (await rows(committing)).length > 0;
    });
    await proxy.mode('drop-answers');
    const outcome = await sent;
    expect(summary(outcome)).toBe('unknown timeout-after-send');
    await until('it is applied', async () => (await rows('select no from slow_orders')).length === 1);
    expect(summary(await sender().send(payload, key('k1')))).toBe('accepted deduplicated');
    expect(await rows('select no from slow_orders')).toHaveLength(1);
  });

  it('also when the connection breaks instead of staying silent', async () => {
    await admin.query(`
      create or replace function slow() returns trigger language plpgsql as 'begin perform pg_sleep(20); return null; end';
      drop table if exists slow_orders;
      create table slow_orders (no text);
      create constraint trigger slow after insert on slow_orders deferrable initially deferred
        for each row execute function slow()`);
    const sent = sender().send(statement(`insert into slow_orders values ('C-1')`), key('k1'));
    await until('the commit is cut', async () => {
      const cut = `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and lower(query) = 'commit' and state = 'active'`;
      return (await rows(cut)).length > 0;
    });
    expect(summary(await sent)).toBe('unknown commit-unanswered');
  });
});

describe('the dedupe table', () => {
  it('is created in the first schema of the search path', async () => {
    await admin.query('create schema if not exists tasks');
    const url = new URL(database.url);
    url.searchParams.set('options', '-c search_path=tasks,public');
    expect(summary(await sender(url.href).send(insert('B-1'), key('k1')))).toBe('accepted committed');
    expect(await rows(`select schemaname from pg_tables where tablename = 'trueup_dedupe'`)).toEqual([
      { schemaname: 'tasks' },
    ]);
    await admin.query('drop schema tasks cascade');
  });

  it('is created again after somebody dropped it', async () => {
    const to = sender();
    await to.send(insert('B-1'), key('k1'));
    await admin.query('drop table trueup_dedupe');
    expect((await to.send(insert('B-2'), key('k2'))).class).not.toBe('accepted');
    expect(summary(await to.send(insert('B-2'), key('k2')))).toBe('accepted committed');
  });

  it('that this user may not create is named with its DDL; made by its owner, it is used', async () => {
    const role = `limited_${Math.random().toString(36).slice(2)}`;
    await admin.query(
      `create role ${role} login password 'pw'; grant select, insert, update on orders to ${role}`,
    );
    await admin.query('revoke create on schema public from public');
    const url = new URL(database.url);
    url.username = role;
    url.password = 'pw';
    const to = sender(url.href);
    const refused = await to.send(insert('B-1'), key('k1'));
    expect(summary(refused)).toBe('target-down dedupe-table-missing');
    expect(refused.error?.message).toContain('create table if not exists trueup_dedupe');
    const ddl = /run: (create table.*?\)); grant/.exec(refused.error?.message ?? '')?.[1] ?? '';
    await admin.query(`${ddl}; grant select, insert on trueup_dedupe to ${role}`);
    expect(summary(await to.send(insert('B-1'), key('k1')))).toBe('accepted committed');
    await to.close();
    await admin.query(`drop owned by ${role}; drop role ${role}`);
    cleanups.pop();
  });
});

describe('connections', () => {
  it('are at hand before a slot is used, or their failure is', async () => {
    const to = sender(database.url);
    expect(to.ready()).toBe(false);
    await to.warm();
    expect(to.ready()).toBe(true);
    const unreachable = sender('postgres://nobody@127.0.0.1:1/x');
    await unreachable.warm();
    expect(unreachable.ready()).toBe(true);
  });

  it('that cannot be made are the fault of the target, and no secret is in the outcome', async () => {
    const to = sender('postgres://nobody:hidden-password@127.0.0.1:1/x');
    await to.warm();
    const outcome = await to.send(insert('B-1'), key('k1'));
    expect(summary(outcome)).toBe('target-down ECONNREFUSED');
    expect(JSON.stringify(outcome)).not.toContain('hidden-password');
  });

  it('that never come are given up at the connect timeout, or at the deadline', async () => {
    const { hostname, port } = new URL(database.url);
    const proxy = await startProxy({ host: hostname, port: Number(port) });
    cleanups.push(() => proxy.close());
    await proxy.mode('black-hole');
    const url = proxy.url(database.url);
    const impatient = await sender(url, { timeout: { connect: '200ms' } }).send(insert('B-1'), key('k1'));
    expect(summary(impatient)).toBe('target-down connect-timeout');
    const context = sendContext({ idempotencyKey: 'k1', signal: AbortSignal.timeout(200) });
    const late = await sender(url, { timeout: { connect: '1s' } }).send(insert('B-1'), context);
    expect(summary(late)).toBe('target-down timeout-before-send');
  });
});
