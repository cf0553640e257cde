import { describe, expect, test } from 'vitest';
import { TrueupError } from '../../../src/error.ts';
import {
  inTransaction,
  isTransientDatabaseError,
  only,
  openDatabase,
  storeClock,
} from '../../../src/store/database.ts';
import { sqlState } from '../../../src/store/database-error.ts';
import { startProxy } from '../../support/tcp-proxy.ts';
import { until } from '../../support/wait.ts';
import { storeForFile } from './store.ts';

const store = storeForFile();

async function value(sql: string, bindings: string[] = []): Promise<unknown> {
  const { rows } = await store.db.raw(`select ${sql} as value`, bindings);
  return rows[0].value;
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => expect.fail('it did not fail'),
    (error: unknown) => error,
  );
}

describe('values', () => {
  test('timestamps come back as instants in UTC with every microsecond', async () => {
    const instant = '2026-11-30T17:57:31.123456Z';
    expect(await value('?::timestamptz', [instant])).toBe(instant);
    expect(await value(`'2026-03-29 01:30:00.000001+05:45'::timestamptz`)).toBe(
      '2026-03-28T19:45:00.000001Z',
    );
    expect(await value(`array['2026-01-01 00:00:00.5+00'::timestamptz]`)).toEqual([
      '2026-01-01T00:00:00.500000Z',
    ]);
  });

  test('a bigint and a numeric beyond what a JavaScript number holds come back whole', async () => {
    expect(await value('9223372036854775807::bigint')).toBe('9223372036854775807');
    expect(await value('12345678901234567890.120::numeric')).toBe('12345678901234567890.120');
    expect(await value('array[9223372036854775807]::bigint[]')).toEqual(['9223372036854775807']);
    expect(await value('array[0.10]::numeric[]')).toEqual(['0.10']);
  });

  test('jsonb comes back parsed', async () => {
    expect(await value(`'{"a": [1, null]}'::jsonb`)).toEqual({ a: [1, null] });
  });

  test('a time that no instant can hold is an error, never a wrong value', async () => {
    await expect(value(`'infinity'::timestamptz`)).rejects.toThrow('"infinity", which is no instant');
  });

  test('the store clock moves on within a transaction', async () => {
    await inTransaction(store.db, async (trx) => {
      const before = await storeClock(trx);
      await trx.raw('select pg_sleep(0.01)');
      expect((await storeClock(trx)) > before).toBe(true);
    });
  });
});

describe('connections', () => {
  test('an address that is no postgres URL is refused without repeating it', () => {
    const open = () => openDatabase('mysql://root:hunter2@db/x', { applicationName: 't' });
    expect(open).toThrow(expect.objectContaining({ code: 'TRU_STORE_URL', exit: 2 }));
    expect(open).not.toThrow(/hunter2/);
  });

  test('nothing is connected before the first statement, and a refused connection is transient', async () => {
    const proxy = await startProxy(address());
    await proxy.close();
    const db = openDatabase(proxy.url(store.url), { applicationName: 't' });
    const error = await failure(storeClock(db));
    expect(isTransientDatabaseError(error)).toBe(true);
    await db.destroy();
  });

  test('a pool whose idle connections were cut off works on', async () => {
    const db = openDatabase(store.url, { applicationName: 'cut-off', max: 2 });
    await Promise.all([storeClock(db), storeClock(db)]);
    const sessions = () => store.db('pg_stat_activity').where({ application_name: 'cut-off' });
    await sessions().select(store.db.raw('pg_terminate_backend(pid)'));
    await until('the sessions are gone', async () => (await sessions()).length === 0);
    await until('the pool has noticed', async () => storeClock(db).catch(() => false));
    expect(await storeClock(db)).toMatch(/Z$/);
    await db.destroy();
  });

  test('a connection on which the store falls silent is given up, with a transient error', async () => {
    const proxy = await startProxy(address());
    const db = openDatabase(proxy.url(store.url), { applicationName: 't', silenceMs: 300 });
    await storeClock(db);
    await proxy.mode('black-hole');
    const error = await failure(storeClock(db));
    expect(String(error)).toContain('said nothing for 0.3 s');
    expect(isTransientDatabaseError(error)).toBe(true);
    await proxy.mode('pass');
    await until('the store answers again', async () => storeClock(db).catch(() => false));
    await db.destroy();
    await proxy.close();
  });

  test('a full pool says so, and what to do', async () => {
    const db = openDatabase(store.url, { applicationName: 't', max: 1 });
    await inTransaction(db, async (trx) => {
      await storeClock(trx);
      const error = await failure(storeClock(db));
      expect(error).toBeInstanceOf(TrueupError);
      expect(error).toMatchObject({ code: 'TRU_STORE_BUSY', exit: 75 });
      expect(isTransientDatabaseError(error)).toBe(true);
    });
    await db.destroy();
  });

  test('a constraint violation is not transient', async () => {
    const error = await failure(store.db('meta').insert({}));
    expect(sqlState(error)).toBe('23505');
    expect(isTransientDatabaseError(error)).toBe(false);
    expect(isTransientDatabaseError(new Error('outer', { cause: new Error('Connection terminated') }))).toBe(
      true,
    );
  });
});

describe('a transaction', () => {
  test('a serialization failure runs it again until it fits', async () => {
    await store.db.raw('create table counter (n integer not null)');
    await store.db('counter').insert({ n: 0 });
    let runs = 0;
    await inTransaction(store.db, async (trx) => {
      runs += 1;
      await trx.raw('set transaction isolation level serializable');
      const { n } = await trx('counter').first('n');
      if (runs === 1) await store.db('counter').update({ n: 10 });
      await trx('counter').update({ n: n + 1 });
    });
    expect(runs).toBe(2);
    expect(await store.db('counter').first('n')).toEqual({ n: 11 });
  });

  test('a deadlock costs neither side its work', async () => {
    await store.db.raw('create table pair (id integer primary key, n integer not null)');
    await store.db('pair').insert([
      { id: 1, n: 0 },
      { id: 2, n: 0 },
    ]);
    let arrived = 0;
    const bump = (first: number, second: number) =>
      inTransaction(store.db, async (trx) => {
        await trx('pair').where({ id: first }).increment('n', 1);
        arrived += 1;
        await until('both hold one row', async () => arrived >= 2);
        await trx('pair').where({ id: second }).increment('n', 1);
      });
    await Promise.all([bump(1, 2), bump(2, 1)]);
    expect(arrived).toBeGreaterThan(2);
    expect(await store.db('pair').orderBy('id').pluck('n')).toEqual([2, 2]);
  });

  test('it gives up after 5 tries', async () => {
    let runs = 0;
    const error = await failure(
      inTransaction(store.db, async (trx) => {
        runs += 1;
        await trx.raw(`do $$ begin raise exception 'again' using errcode = '40001'; end $$`);
      }),
    );
    expect(sqlState(error)).toBe('40001');
    expect(runs).toBe(5);
  });

  test('any other failure is thrown at once and leaves nothing', async () => {
    let runs = 0;
    const error = await failure(
      inTransaction(store.db, async (trx) => {
        runs += 1;
        await trx('worker').insert({ id: 'half', version: '1' });
        throw new Error('no');
      }),
    );
    expect(error).toMatchObject({ message: 'no' });
    expect(runs).toBe(1);
    expect(await store.db('worker').where({ id: 'half' })).toEqual([]);
  });

  test('a failed statement whose error was caught does not pass for a commit', async () => {
    const error = await failure(
      inTransaction(store.db, async (trx) => {
        await trx('worker').insert({ id: 'lost', version: '1' });
        await failure(trx.raw('select 1 / 0'));
      }),
    );
    expect(error).toMatchObject({ code: 'TRU_STORE_TRANSACTION_FAILED' });
  });

  test('inside another one it joins it', async () => {
    await failure(
      inTransaction(store.db, async (trx) => {
        await inTransaction(trx, async (inner) => inner('worker').insert({ id: 'inner', version: '1' }));
        throw new Error('outer ends badly');
      }),
    );
    expect(await store.db('worker').where({ id: 'inner' })).toEqual([]);
  });

  test('the one row that must be there is missed loudly', () => {
    expect(() => only([])).toThrow('gave no row');
  });
});

function address(): { host: string; port: number } {
  const url = new URL(store.url);
  return { host: url.hostname, port: Number(url.port) };
}
