import { randomBytes } from 'node:crypto';
import { type Connection, createConnection } from 'mysql2/promise';
import { inject } from 'vitest';

export interface TestMysql {
  /** Of a user that may do everything. */
  readonly url: string;
  readonly name: string;
  readonly admin: Connection;
  /** A user of this database's own with these rights on it, and the address to log in with. */
  user(
    rights: string,
    ...global: readonly string[]
  ): Promise<{ readonly name: string; readonly url: string }>;
  drop(): Promise<void>;
}

/** A fresh empty database on the MariaDB or MySQL of this test run, or on `server`. The server may be shared: only what is made here is removed. */
export async function createMysql(server: string = inject('mysqlUrl')): Promise<TestMysql> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  const url = new URL(server);
  const admin = await createConnection({
    uri: url.href,
    timezone: 'Z',
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
  });
  await admin.query(`create database ${name} character set utf8mb4`);
  await admin.query(`use ${name}`);
  await admin.query("set time_zone = '+00:00'");
  url.pathname = `/${name}`;
  const users: string[] = [];
  return {
    url: url.href,
    name,
    admin,
    async user(rights, ...global) {
      const user = `test_${randomBytes(6).toString('hex')}`;
      users.push(user);
      await admin.query(`create user ${user}@'%' identified by 'hunter2'`);
      await admin.query(`grant ${rights} on ${name}.* to ${user}@'%'`);
      for (const right of global) await admin.query(`grant ${right} on *.* to ${user}@'%'`);
      const own = new URL(url);
      own.username = user;
      own.password = 'hunter2';
      return { name: user, url: own.href };
    },
    async drop() {
      for (const user of users) await admin.query(`drop user ${user}@'%'`);
      await admin.query(`drop database ${name}`);
      await admin.end();
    },
  };
}
