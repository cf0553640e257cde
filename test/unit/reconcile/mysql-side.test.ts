import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/config/secret.ts';
import { mysqlAddress, sslOptions } from '../../../src/reconcile/sides/mysql-address.ts';
import { lagOf } from '../../../src/reconcile/sides/mysql-clock.ts';
import { toSideError } from '../../../src/reconcile/sides/mysql-errors.ts';
import { keyColumnOf } from '../../../src/reconcile/sides/mysql-key.ts';
import { keyConditions } from '../../../src/reconcile/sides/mysql-lookup.ts';
import {
  flavourOf,
  limitStatement,
  pinStatements,
  wrongPin,
} from '../../../src/reconcile/sides/mysql-pins.ts';
import { quoteIdentifier, quoteTable } from '../../../src/reconcile/sides/mysql-sql.ts';

describe('the pinned session', () => {
  const mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';
  const good = ['utf8mb4', 'utf8mb4', 'utf8mb4', '+00:00', mode];

  it('is refused when anything of it is not as pinned (S9, T2)', () => {
    expect(wrongPin(good)).toBeUndefined();
    expect(wrongPin([...good.slice(0, 4), mode.split(',').reverse().join(',')])).toBeUndefined();
    for (const [at, value, words] of [
      [0, 'utf8mb3', 'character set is utf8mb3'],
      [1, 'latin1', 'character set is latin1'],
      [2, '', 'character set is not known'],
      [3, 'SYSTEM', 'time zone is SYSTEM'],
      [4, `${mode},ANSI_QUOTES`, 'sql_mode'],
      [4, 'STRICT_TRANS_TABLES', 'sql_mode'],
    ] as const) {
      const settings = good.with(at, value);
      expect(wrongPin(settings)).toContain(words);
    }
    expect(wrongPin([])).toBeDefined();
  });

  it('limits statements in the words of its server', () => {
    expect(flavourOf('10.11.19-MariaDB-0+deb12u1')).toBe('mariadb');
    expect(flavourOf('8.4.3')).toBe('mysql');
    expect(limitStatement('mariadb', 1500)).toBe('set session max_statement_time = 1.5');
    expect(limitStatement('mysql', 1500)).toBe('set session max_execution_time = 1500');
    expect(pinStatements('mysql', 1000).join()).not.toContain('in_predicate_conversion_threshold');
  });
});

describe('the address of a MySQL side', () => {
  const read = (url: string) => mysqlAddress(new Secret(url), 'source');

  it('is read with what is percent-encoded, and shown without its secrets', () => {
    expect(read('mysql://u%40x:p%2Fw@db:3307/sh%20op')).toMatchObject({
      shown: 'db:3307',
      host: 'db',
      port: 3307,
      user: 'u@x',
      password: 'p/w',
      database: 'sh op',
    });
    expect(read('mariadb://u:100%@[::1]/')).toMatchObject({
      host: '::1',
      port: 3306,
      password: '100%',
      database: '',
    });
    expect(read('mysql://u@localhost/d?socket=/run/s.sock')).toMatchObject({
      shown: '/run/s.sock',
      socket: '/run/s.sock',
    });
  });

  it('says how far the server’s certificate is believed', () => {
    const options = (mode: string) => sslOptions(read(`mysql://h/d?ssl-mode=${mode}`));
    expect(options('disabled')).toBeUndefined();
    expect(options('REQUIRED')).toEqual({ rejectUnauthorized: false, verifyIdentity: false });
    expect(options('VERIFY_CA')).toEqual({ rejectUnauthorized: true, verifyIdentity: false });
    expect(options('VERIFY_IDENTITY')).toEqual({ rejectUnauthorized: true, verifyIdentity: true });
  });
});

describe('the lag of a replica', () => {
  it('is that of its slowest channel, with the second that the server cuts', () => {
    expect(lagOf([])).toEqual({ kind: 'primary' });
    expect(lagOf(['0'])).toEqual({ kind: 'replica', lagSeconds: 1 });
    expect(lagOf(['3', '90', '0'])).toEqual({ kind: 'replica', lagSeconds: 91 });
  });

  it('is not known while a channel is stopped', () => {
    expect(lagOf(['3', null])).toEqual({ kind: 'replica', lagSeconds: null });
  });
});

describe('errors of MySQL', () => {
  const side = (error: object) =>
    toSideError(Object.assign(new Error('words'), error), 'source mysql shop.t at h');

  it.each([
    [{ errno: 1040, sqlState: '08004' }, 'TRU_SIDE_UNREACHABLE', true],
    [{ errno: 1213, sqlState: '40001' }, 'TRU_SIDE_UNREACHABLE', true],
    [{ errno: 1412, sqlState: 'HY000' }, 'TRU_SIDE_UNREACHABLE', true],
    [{ errno: 1927, sqlState: '70100' }, 'TRU_SIDE_UNREACHABLE', true],
    [{ errno: -111, code: 'ECONNREFUSED' }, 'TRU_SIDE_UNREACHABLE', true],
    [{ code: 'PROTOCOL_CONNECTION_LOST', fatal: true }, 'TRU_SIDE_UNREACHABLE', true],
    [{ errno: 1045, sqlState: '28000' }, 'TRU_SIDE_REFUSED', false],
    [{ errno: 1142, sqlState: '42000' }, 'TRU_SIDE_REFUSED', false],
    [{ errno: 9999, sqlState: 'HY000' }, 'TRU_SIDE_REFUSED', false],
    [{ errno: 1064, sqlState: '42000' }, 'TRU_SIDE_MISCONFIGURED', false],
    [{ errno: 9998, sqlState: '22007' }, 'TRU_SIDE_MISCONFIGURED', false],
  ])('%j is %s', (error, code, transient) => {
    expect(side(error)).toMatchObject({ code, transient, where: 'source mysql shop.t at h' });
  });

  it('name the limit that a statement ran into', () => {
    for (const errno of [1969, 3024]) expect(side({ errno }).message).toContain('statementTimeout');
  });
});

describe('statements for MySQL', () => {
  it('quote names as they are written (K9)', () => {
    expect(quoteIdentifier('a`b')).toBe('`a``b`');
    expect(quoteTable('shop.Order')).toBe('`shop`.`Order`');
    expect(quoteTable('shop.`a.b`')).toBe('`shop`.`a.b`');
    for (const name of ['', 'a.b.c', 'a`b', '.a']) expect(() => quoteTable(name)).toThrow(TypeError);
  });

  it('ask for so many keys at once that they stay small', () => {
    const text = { charset: 'utf8mb4', collation: 'utf8mb4_bin' };
    const column = {
      name: 'k',
      kind: 'text',
      type: 'text',
      native: 'text',
      unsigned: false,
      text,
      origin: null,
    } as const;
    const key = keyColumnOf('k', column, undefined);
    if (typeof key === 'string') throw new Error(key);
    const sizes = (keys: readonly (readonly string[])[], pageSize: number) =>
      [...keyConditions([key], keys, pageSize)].map((condition) => condition.split('_utf8mb4 X').length - 1);
    const short = Array.from({ length: 2500 }, (_, i) => [`k${i}`]);
    expect(sizes(short, 5000)).toEqual([1000, 1000, 500]);
    expect(sizes(short.slice(0, 25), 10)).toEqual([10, 10, 5]);
    const long = Array.from({ length: 200 }, (_, i) => ['x'.repeat(3000) + i]);
    for (const condition of keyConditions([key], long, 5000)) expect(condition.length).toBeLessThan(600_000);
    expect(sizes([['a', 'b'], []], 10)).toEqual([]);
  });
});
