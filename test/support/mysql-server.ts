import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createConnection } from 'mysql2/promise';
import { installPackage, onPath } from './on-path.ts';
import { sparePort } from './spare-port.ts';
import { until } from './wait.ts';

export interface MysqlServer {
  /** Of a user that may do everything. */
  readonly url: string;
  /** Ends it if it was started here. */
  stop(): Promise<void>;
}

export interface MysqlServerOptions {
  /** Of the machine, as the server sees it. */
  readonly timeZone?: string;
  /** More arguments of the server. */
  readonly args?: readonly string[];
}

const run = promisify(execFile);

/**
 * A MariaDB or MySQL for tests: the one in `TRUEUP_TEST_MYSQL_URL`, else the one on port 3306 of this machine when it
 * lets root in without a password, else one started on a spare port with files of its own, installed from Debian's
 * packages first when this is root on a Debian without it.
 */
export async function findMysql(dir: string): Promise<MysqlServer> {
  const { TRUEUP_TEST_MYSQL_URL: given } = process.env;
  for (const url of given ? [given] : ['mysql://root@127.0.0.1:3306/'])
    if (await mayCreate(url)) return { url, async stop() {} };
  if (given)
    throw new Error(
      'at the address in TRUEUP_TEST_MYSQL_URL no MySQL answers that lets its user create databases',
    );
  return startMysql(dir);
}

/** A server of one's own, for a test that changes settings of the whole server. Its files are put into `dir`. */
export async function startMysql(dir: string, options: MysqlServerOptions = {}): Promise<MysqlServer> {
  const program = await serverProgram();
  // A path of a socket may have only about a hundred characters.
  const home = await mkdtemp(join(dir.length > 60 ? tmpdir() : dir, 'mysql-'));
  const data = join(home, 'data');
  const asRoot = process.getuid?.() === 0 ? ['--user=root'] : [];
  await initialise(program, data, asRoot);
  const port = await sparePort();
  const child = spawn(
    program,
    [
      '--no-defaults',
      ...asRoot,
      `--datadir=${data}`,
      `--port=${port}`,
      `--socket=${join(home, 's')}`,
      `--pid-file=${join(home, 'pid')}`,
      '--bind-address=127.0.0.1',
      '--innodb-flush-log-at-trx-commit=0',
      '--innodb-buffer-pool-size=32M',
      '--skip-name-resolve',
      ...(options.args ?? []),
    ],
    { stdio: 'ignore', env: { ...process.env, TZ: options.timeZone ?? 'UTC' } },
  );
  const exit = once(child, 'exit');
  const url = `mysql://root@127.0.0.1:${port}/`;
  await until(`${program} answers on port ${port}`, () => mayCreate(url), { timeoutMs: 30_000 });
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      await exit;
    },
  };
}

async function initialise(program: string, data: string, asRoot: readonly string[]): Promise<void> {
  const { stdout } = await run(program, ['--no-defaults', '--version']);
  if (!stdout.includes('MariaDB')) {
    await run(program, ['--no-defaults', ...asRoot, '--initialize-insecure', `--datadir=${data}`]);
    return;
  }
  const script = (await onPath('mariadb-install-db')) ?? (await onPath('mysql_install_db'));
  if (script === undefined) throw new Error(`${program} is here and mariadb-install-db is not`);
  const args = ['--auth-root-authentication-method=normal', '--skip-test-db', '--skip-name-resolve'];
  await run(script, ['--no-defaults', ...asRoot, `--datadir=${data}`, ...args]);
}

async function serverProgram(): Promise<string> {
  const found = (await onPath('mariadbd')) ?? (await onPath('mysqld'));
  if (found !== undefined) return found;
  const installed = (await installPackage('mariadb-server-core')) ? await onPath('mariadbd') : undefined;
  if (installed !== undefined) return installed;
  throw new Error(
    'the tests need MariaDB: install mariadb-server, start one on 127.0.0.1:3306 with a root without password, or set TRUEUP_TEST_MYSQL_URL',
  );
}

async function mayCreate(url: string): Promise<boolean> {
  try {
    const connection = await createConnection({ uri: url, connectTimeout: 2000 });
    try {
      const [rows] = await connection.query('show grants');
      return JSON.stringify(rows).includes('ALL PRIVILEGES ON *.*');
    } finally {
      await connection.end();
    }
  } catch {
    return false;
  }
}
