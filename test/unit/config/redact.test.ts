import { expect, it } from 'vitest';
import { createRedactor, secretsIn } from '../../../src/config/redact.ts';

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
  expect(secretsIn('Bearer abc')).toEqual(['Bearer abc']);
});

it('reads a long text without addresses in one pass', () => {
  const long = 'a:b@'.repeat(500_000);
  const started = performance.now();
  expect(createRedactor(['hunter2-hunter2'])(long)).toBe(long);
  expect(performance.now() - started).toBeLessThan(5000);
});
