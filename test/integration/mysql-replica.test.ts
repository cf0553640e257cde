import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Connection, createConnection } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addMillis, instantFromMillis } from '../../src/reconcile/instant.ts';
import type { Side } from '../../src/reconcile/side.ts';
import { type MysqlServer, startMysql } from '../support/mysql-server.ts';
import { openSide } from '../support/sides.ts';
import { until } from '../support/wait.ts';

const { signal } = new AbortController();
let dir: string;
let primary: MysqlServer;
let replica: MysqlServer;
let writer: Connection;
let follower: Connection;
let side: Side;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'trueup-mysql-'));
  [primary, replica] = await Promise.all([
    startMysql(dir, { args: ['--server-id=1', '--log-bin=log'] }),
    startMysql(dir, { args: ['--server-id=2'] }),
  ]);
  writer = await createConnection(primary.url);
  follower = await createConnection(replica.url);
  await writer.query("create user follow@'127.0.0.1' identified by 'x'");
  await writer.query("grant replication slave on *.* to follow@'127.0.0.1'");
  const { port } = new URL(primary.url);
  // From the first change on it stays an hour behind.
  await follower.query(
    `change master to master_host = '127.0.0.1', master_port = ${port}, master_user = 'follow', master_password = 'x', master_delay = 3600`,
  );
  await follower.query('start slave');
  await follower.query('create database shop');
  await follower.query('create table shop.orders (k int, t timestamp null)');
  side = openSide({ type: 'mysql', url: replica.url, table: 'shop.orders' });
});
afterAll(async () => {
  await side?.close();
  await writer?.end();
  await follower?.end();
  await replica?.stop();
  await primary?.stop();
  await rm(dir, { recursive: true, force: true });
});

describe('a replica that lags', () => {
  it('moves the clock back to what it has applied, and sees no transaction of its primary (C17)', async () => {
    await writer.query('create database late');
    const written = instantFromMillis(Date.now());
    const clock = await until('the lag shows', async () => {
      const read = await side.clock(signal);
      return addMillis(read.now, 3000) < instantFromMillis(Date.now()) ? read : undefined;
    });
    // What the primary wrote has not come, so the clock stands before it (in whole seconds of both servers).
    expect(clock?.now !== undefined && clock.now < addMillis(written, 1000)).toBe(true);
    expect(clock).toMatchObject({ oldestOpen: null, seesTransactions: false });
    expect((await side.describe(signal)).warnings).toContainEqual(
      expect.stringContaining('this is a replica'),
    );
  });
});
