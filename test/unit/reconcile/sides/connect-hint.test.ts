import { describe, expect, it } from 'vitest';
import { connectHint, serverOf } from '../../../../src/reconcile/sides/connect-hint.ts';
import { toSideError } from '../../../../src/reconcile/sides/postgres-errors.ts';

const coded = (code: string, message = 'it failed') => Object.assign(new Error(message), { code });

describe('connectHint', () => {
  it.each([
    [coded('ENOTFOUND'), 'host name'],
    [coded('ECONNREFUSED'), 'host and port'],
    [coded('28P01'), 'user and password'],
    [coded('28000', 'role "x" is not permitted to log in'), 'the role may log in'],
    [coded('3D000'), 'name of the database'],
    [coded('42501', 'permission denied for database "x"'), 'CONNECT'],
    [coded('53300'), 'max_connections'],
    [coded('57P03'), 'try again'],
    [coded('SELF_SIGNED_CERT_IN_CHAIN'), 'sslmode'],
    [coded('ERR_TLS_CERT_ALTNAME_INVALID'), 'sslmode'],
    [new Error('The server does not support SSL connections'), 'sslmode'],
    [new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'), 'asks for a password'],
    [new Error('timeout expired'), 'host and port'],
    [new Error('outer', { cause: coded('ECONNREFUSED') }), 'host and port'],
  ])('says of %s what to check', (error, words) => {
    expect(connectHint(error)).toContain(words);
    // All of these are the server's or the network's, not a mistake in the file, so a command ends with 75.
    if (!('cause' in error)) expect(toSideError(error, 'orders source').exit).toBe(75);
  });

  it.each([coded('42P01'), coded('42703'), coded('22P02'), coded('23505'), new Error('else'), 'text', null])(
    'is silent about %s',
    (error) => {
      expect(connectHint(error)).toBeUndefined();
    },
  );

  it.each(['42P01', '42703', '42601', '22P02', '3F000'])('leaves %s a mistake in the file', (code) => {
    expect(toSideError(coded(code), 'orders source').exit).toBe(2);
  });
});

describe('serverOf', () => {
  it.each([
    ['postgres://u:secret@db:6432/shop', 'db:6432', 'shop'],
    ['postgres://u:secret@db/shop', 'db:5432', 'shop'],
    ['postgres://u:secret@[::1]:5433/shop', '[::1]:5433', 'shop'],
    ['postgres://u:secret@ignored/shop?host=/run/pg&port=5434', '/run/pg:5434', 'shop'],
    ['postgres://u:secret@db', 'db:5432', 'u'],
    ['u:secret@db', '[unreadable url]', '?'],
  ])('names host, port and database of %s', (address, server, database) => {
    expect(serverOf(address)).toEqual({ server, database });
  });
});
