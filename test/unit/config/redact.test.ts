import { expect, it } from 'vitest';
import { createRedactor, isAddressPart, secretsIn } from '../../../src/config/redact.ts';

it('replaces the longest secret first', () => {
  expect(createRedactor(['hunter2', 'hunter2-and-more'])('a hunter2-and-more b hunter2')).toBe(
    'a [secret] b [secret]',
  );
});

it('leaves short and common values alone', () => {
  const redact = createRedactor(['true', '12345', 'localhost', '127.0.0.1', 'postgres', '']);
  expect(redact('true 12345 localhost 127.0.0.1 postgres')).toBe('true 12345 localhost 127.0.0.1 postgres');
});

it('finds a password inside a Basic authorization header', () => {
  const redact = createRedactor(['correct horse/battery+']);
  for (const user of ['u', 'us', 'use', 'user']) {
    const header = Buffer.from(`${user}:correct horse/battery+`).toString('base64');
    const text = redact(`authorization: Basic ${header}`);
    expect(text).toContain('[secret]');
    expect(
      Buffer.from(text.replace(/^.*Basic /, '').replace('[secret]', ''), 'base64').toString(),
    ).not.toContain('horse');
  }
});

it('masks passwords of addresses that it was not told about', () => {
  const redact = createRedactor([]);
  expect(redact('to postgres://app:s3cr3t@db:5432/x and redis://:pw@r')).toBe(
    'to postgres://app:[secret]@db:5432/x and redis://:[secret]@r',
  );
  expect(redact('{"a":"amqp://u:p@ss@h","b":"x@y"}')).toBe('{"a":"amqp://u:[secret]@h","b":"x@y"}');
  expect(redact('http://127.0.0.1:8080/a@b and https://h/x:y@z')).toBe(
    'http://127.0.0.1:8080/a@b and https://h/x:y@z',
  );
});

it('keeps the host of an address readable', () => {
  expect(secretsIn('postgres://app:pa%24sword@db/shop?sslmode=require')).toEqual(['pa%24sword', 'pa$sword']);
  expect(secretsIn('https://robot.example/send?access_token=abc123')).toEqual(['abc123']);
  expect(secretsIn('https://hooks.example/services/T0/B0/abcdefghijklmnopqrst')).toEqual([
    'abcdefghijklmnopqrst',
  ]);
  expect(secretsIn('http://partner.example/api')).toEqual([]);
  expect(secretsIn('Bearer abc')).toEqual(['Bearer abc', 'abc']);
});

it('keeps names of databases, users and options readable, however long', () => {
  expect(
    secretsIn('postgres://reporting_reader@db/order_reconciliation?application_name=trueup-reconciliation'),
  ).toEqual([]);
  expect(secretsIn('postgres://u@db/x?sslmode=verify-full&sslkey=/etc/ssl/private/client.key')).toEqual([]);
  expect(secretsIn('postgres://u@db/x?password=abc&sslpassword=def')).toEqual(['abc', 'def']);
  expect(secretsIn('redis://:pw@queue/0')).toEqual(['pw']);
});

it('hides a token that stands in the place of a user', () => {
  expect(secretsIn('https://sk_live_4711@api.example/v1')).toEqual(['sk_live_4711']);
  expect(secretsIn('https://shop:s3cr3t@api.example/v1')).toEqual(['s3cr3t']);
});

it('tells pieces of an address that may be shown from those that may not', () => {
  const address = 'postgres://reader:pa55word@db.internal:5432/shop_reconciliation';
  for (const part of ['db.internal', '5432', 'reader', 'shop_reconciliation', 'db.internal:5432'])
    expect(isAddressPart(address, part), part).toBe(true);
  for (const part of ['pa55word', address, 'elsewhere'])
    expect(isAddressPart(address, part), part).toBe(false);
  expect(isAddressPart('https://hooks.example/T0KEN-T0KEN', 'T0KEN-T0KEN')).toBe(false);
  expect(isAddressPart('https://hooks.example/T0KEN-T0KEN', 'hooks.example')).toBe(true);
});

it('reads a long text without addresses in one pass', () => {
  const long = 'a:b@'.repeat(500_000);
  const started = performance.now();
  expect(createRedactor(['hunter2-hunter2'])(long)).toBe(long);
  expect(performance.now() - started).toBeLessThan(5000);
});
