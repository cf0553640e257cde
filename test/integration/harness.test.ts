import pg from 'pg';
import { expect, test } from 'vitest';
import { createDatabase, createStore } from '../support/database.ts';
import { startServer } from '../support/http-server.ts';

test('a store has the migrated tables, a database is empty, and both can be dropped while in use', async () => {
  for (const [make, tables] of [
    [createStore, true],
    [createDatabase, false],
  ] as const) {
    const database = await make();
    const client = new pg.Client({ connectionString: database.url });
    client.on('error', () => undefined);
    await client.connect();
    const { rows } = await client.query("select to_regclass('trueup.meta') is not null as found");
    expect(rows).toEqual([{ found: tables }]);
    const ended = new Promise((done) => client.once('end', done));
    await database.drop();
    await ended;
  }
});

test('the HTTP server records a request with its body and lets the handler read it as well', async () => {
  const server = await startServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    response.end(body.toUpperCase());
  });
  const answer = await fetch(`${server.url}/a?b=1`, {
    method: 'POST',
    body: 'hello',
    headers: { 'x-y': 'z' },
  });
  expect(await answer.text()).toBe('HELLO');
  expect(server.requests).toMatchObject([
    { method: 'POST', url: '/a?b=1', body: 'hello', headers: { 'x-y': 'z' } },
  ]);
  await server.close();
});
