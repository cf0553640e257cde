import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, readlink, realpath, rm, stat, symlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { TrueupError } from '../error.ts';
import { codeOf } from './file-error.ts';

/** PostgreSQL refuses to run as root, so root lends it this user, the one that owns nothing ("nobody"). */
const NOBODY = { uid: 65534, gid: 65534 } as const;

/** The user that the server's processes run as. Empty: the user of this process. */
export interface RunAs {
  readonly uid?: number;
  readonly gid?: number;
}

export interface Home {
  /** The directory that holds `cluster`, absolute and without symbolic links. */
  readonly path: string;
  readonly runAs: RunAs;
}

const run = promisify(execFile);

/**
 * Decides where the files of the server live and which user owns them. Normally that is `dir`, made when missing.
 * As root the server runs as another user, which may not be let through to `dir` (a checkout under /root): then the
 * place is `/var/lib/trueup/<name>-<hash of dir>`, or the same under `/var/tmp`, and `dir/cluster` is a symbolic link
 * to it. A cluster that exists already stays where it is and runs as its owner.
 */
export async function resolveHome(dir: string): Promise<Home> {
  const wanted = await makeDirectory(resolve(dir));
  const cluster = await existing(join(wanted, 'cluster'));
  if (process.getuid?.() !== 0) {
    if (cluster !== undefined && cluster.uid !== process.getuid?.()) throw notOurs(cluster.path, cluster.uid);
    return { path: cluster === undefined ? wanted : dirname(cluster.path), runAs: {} };
  }
  if (cluster === undefined) return placeForRoot(wanted);
  const runAs = cluster.uid === 0 ? NOBODY : { uid: cluster.uid, gid: cluster.gid };
  if (!(await canEnter(dirname(cluster.path), runAs))) throw unreachable(cluster.path, runAs.uid);
  return { path: dirname(cluster.path), runAs };
}

async function placeForRoot(wanted: string): Promise<Home> {
  const name = `${basename(wanted)}-${createHash('sha256').update(wanted).digest('hex').slice(0, 12)}`;
  if (await canEnter(wanted, NOBODY)) return { path: wanted, runAs: NOBODY };
  for (const place of [join('/var/lib/trueup', name), join('/var/tmp', `trueup-${name}`)]) {
    const path = await makeRootsOwn(place);
    if (path === undefined || !(await canEnter(path, NOBODY))) continue;
    await link(join(path, 'cluster'), join(wanted, 'cluster'));
    return { path, runAs: NOBODY };
  }
  throw unreachable(wanted, NOBODY.uid);
}

/** Undefined when the system does not let root make it (a read-only file system). */
async function makeRootsOwn(place: string): Promise<string | undefined> {
  let path: string;
  try {
    await makeDirectory(dirname(place));
    path = await makeDirectory(place);
  } catch (error) {
    if (['EROFS', 'EACCES', 'EPERM', 'ENOTDIR'].includes(codeOf(error))) return undefined;
    throw error;
  }
  // Anybody may write to /var/tmp: a directory that somebody else put there is not to be trusted.
  const found = await lstat(place);
  return found.isDirectory() && found.uid === 0 ? path : undefined;
}

async function makeDirectory(path: string): Promise<string> {
  // Passing through is enough for the server's user; the umask of a careful root would forbid even that.
  const open = process.getuid?.() === 0 ? 0o711 : 0o700;
  let made: string | undefined;
  try {
    made = await mkdir(path, { recursive: true, mode: open });
  } catch (error) {
    if (codeOf(error) === 'EEXIST' || codeOf(error) === 'ENOTDIR')
      throw new TrueupError(
        'TRU_EMBEDDED_DIR',
        `${path} is needed as a directory, but a file is in the way`,
        {
          cause: error,
        },
      );
    throw error;
  }
  if (made !== undefined) await chmod(path, open);
  return realpath(path);
}

async function existing(path: string): Promise<{ path: string; uid: number; gid: number } | undefined> {
  try {
    const found = await stat(path);
    return { path: await realpath(path), uid: found.uid, gid: found.gid };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function canEnter(path: string, runAs: RunAs): Promise<boolean> {
  try {
    await run('/bin/sh', ['-c', 'cd "$1"', 'sh', path], { ...runAs, cwd: '/' });
    return true;
  } catch (error) {
    // A numeric code is what the shell ended with; anything else means that it did not even start.
    if (error instanceof Error && 'code' in error && typeof error.code === 'number') return false;
    throw new TrueupError('TRU_EMBEDDED_USER', `root cannot start a process as user ${runAs.uid}`, {
      hint: 'set DATABASE_URL to a PostgreSQL server, or run trueup as an ordinary user',
      cause: error,
    });
  }
}

async function link(target: string, path: string): Promise<void> {
  // Left over when the target was deleted: `existing` did not follow it.
  await rm(path, { force: true });
  try {
    await symlink(target, path);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST' || (await readlink(path)) !== target) throw error;
  }
}

function notOurs(path: string, uid: number): TrueupError {
  return new TrueupError('TRU_EMBEDDED_OWNER', `the database in ${path} belongs to user ${uid}`, {
    hint: 'run trueup as that user or as root, give it another directory, or set DATABASE_URL',
  });
}

function unreachable(path: string, uid: number): TrueupError {
  return new TrueupError(
    'TRU_EMBEDDED_UNREACHABLE',
    `user ${uid}, who runs PostgreSQL, cannot enter ${path}`,
    {
      hint: 'allow passing through its parent directories (chmod o+x), or set DATABASE_URL',
    },
  );
}
