import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TrueupError } from '../error.ts';
import type { Binaries } from './binaries.ts';
import { codeOf } from './file-error.ts';
import type { Home } from './home.ts';
import { OWN, SERVER_ENV } from './owned-process.ts';

/** An initialised data directory with what is needed to use it. */
export interface Cluster {
  readonly home: Home;
  readonly binaries: Binaries;
  readonly data: string;
  readonly password: string;
}

const run = promisify(execFile);
const ABANDONED_MS = 60 * 60_000;

/**
 * The cluster in the home, made when there is none. It is made aside and renamed as a whole, password included, so
 * that of several starters one wins and the others use its cluster, and a starter killed half-way leaves none.
 */
export async function openCluster(
  home: Home,
  binaries: Binaries,
  options: { durable: boolean; signal?: AbortSignal | undefined },
): Promise<Cluster> {
  const path = join(home.path, 'cluster');
  const found = await readPassword(path);
  await removeAbandoned(home);
  if (found === undefined) await initialise(path, home, binaries, options);
  const password = found ?? (await readPassword(path));
  if (password === undefined)
    throw new TrueupError('TRU_EMBEDDED_CLUSTER', `${path} exists, but is no database of trueup`, {
      hint: 'move it away, or give trueup another directory',
    });
  return { home, binaries, password, data: join(path, 'data') };
}

/** The port used last. Undefined before the first start. */
export async function storedPort({ home }: Cluster): Promise<number | undefined> {
  const text = await readOptional(join(home.path, 'cluster', 'port'));
  const port = Number(text);
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined;
}

export async function storePort({ home }: Cluster, port: number): Promise<void> {
  const path = join(home.path, 'cluster', 'port');
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, `${port}\n`, { mode: 0o600 });
  await rename(draft, path);
}

async function initialise(
  path: string,
  home: Home,
  { initdb }: Binaries,
  options: { durable: boolean; signal?: AbortSignal | undefined },
): Promise<void> {
  const draft = await mkdtemp(join(home.path, 'init-'));
  try {
    await give(draft, home);
    const passwordFile = join(draft, 'password');
    await writeFile(passwordFile, `${randomBytes(24).toString('base64url')}\n`, {
      mode: 0o600,
      flush: options.durable,
    });
    await give(passwordFile, home);
    await run(
      '/bin/sh',
      [
        ...['-c', OWN, initdb],
        ...['-D', join(draft, 'data'), '-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`],
        // The same order of text and the same characters on every machine; inherited, LANG=C would give SQL_ASCII.
        ...['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'],
        ...(options.durable ? [] : ['--no-sync']),
      ],
      { ...home.runAs, cwd: '/', env: SERVER_ENV, ...(options.signal ? { signal: options.signal } : {}) },
    );
    await rename(draft, path);
  } catch (error) {
    options.signal?.throwIfAborted();
    // Another starter was quicker: its cluster is as good.
    if (['ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) return;
    const said = error instanceof Error && 'stderr' in error ? `:\n${String(error.stderr).trim()}` : '';
    throw new TrueupError('TRU_EMBEDDED_INIT', `PostgreSQL could not make its files in ${home.path}${said}`, {
      hint: 'it needs space on the disk and a user who is listed in /etc/passwd; or set DATABASE_URL to a PostgreSQL server',
      cause: error,
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function give(path: string, { runAs }: Home): Promise<void> {
  if (runAs.uid !== undefined && runAs.gid !== undefined) await chown(path, runAs.uid, runAs.gid);
}

/** Drafts of starters that were killed. A live one needs seconds. */
async function removeAbandoned({ path }: Home): Promise<void> {
  for (const name of await readdir(path)) {
    if (!/^(init|copy)-/.test(name)) continue;
    const draft = join(path, name);
    const age = Date.now() - (await modified(draft));
    if (age > ABANDONED_MS) await rm(draft, { recursive: true, force: true });
  }
}

/** Now for a file that its own starter removed meanwhile. */
async function modified(path: string): Promise<number> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return Date.now();
    throw error;
  }
}

async function readPassword(cluster: string): Promise<string | undefined> {
  return (await readOptional(join(cluster, 'password')))?.trim();
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
