import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Where a program is, also where Debian keeps servers. Undefined when it is not installed. */
export async function onPath(name: string): Promise<string | undefined> {
  const { PATH = '' } = process.env;
  for (const dir of [...PATH.split(delimiter), '/usr/sbin']) {
    const path = join(dir, name);
    try {
      await access(path);
      return path;
    } catch {
      // Not in this directory: the next one.
    }
  }
  return undefined;
}

/** Installs a package of Debian's; false when this is not root on a Debian. */
export async function installPackage(name: string): Promise<boolean> {
  if (process.getuid?.() !== 0 || (await onPath('apt-get')) === undefined) return false;
  // Some packages would start a server of their own: the tests want theirs alone.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  await run('apt-get', ['update'], { env });
  await run('apt-get', ['install', '-y', '--no-install-recommends', name], { env });
  return true;
}
