import { execFile } from 'node:child_process';
import { readFile, readlink } from 'node:fs/promises';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import { codeOf } from './file-error.ts';

const run = promisify(execFile);

/**
 * Whether this process runs and is the server of the data directory: not a stranger that got the number of a dead
 * one, nor a dead one that waits for a parent to notice (in a container often nobody does).
 */
export async function isPostmaster(pid: number, data: string): Promise<boolean> {
  if (process.platform !== 'linux') return (await nameByPs(pid)) === 'postgres';
  const status = await statusByProc(pid);
  if (status === undefined || status.dead || status.name !== 'postgres') return false;
  try {
    // The server works inside its data directory.
    return (await readlink(`/proc/${pid}/cwd`)) === data;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    // Root in a container may be refused this look at another user's process: then the name has to do.
    if (['EACCES', 'EPERM'].includes(codeOf(error))) return true;
    throw error;
  }
}

/** Whether any process has this number. */
export function isInUse(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false;
    if (codeOf(error) === 'EPERM') return true;
    throw error;
  }
}

async function statusByProc(pid: number): Promise<{ name: string; dead: boolean } | undefined> {
  try {
    // `25 (postgres) S 1 ...`
    const [, name = '', state = ''] = /\((.*)\) (\S)/.exec(await readFile(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return { name, dead: state === 'Z' || state === 'X' };
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(codeOf(error))) return undefined;
    throw error;
  }
}

async function nameByPs(pid: number): Promise<string | undefined> {
  try {
    return basename((await run('ps', ['-o', 'comm=', '-p', String(pid)])).stdout.trim());
  } catch (error) {
    // 1: there is no such process.
    if (error instanceof Error && 'code' in error && error.code === 1) return undefined;
    throw error;
  }
}
