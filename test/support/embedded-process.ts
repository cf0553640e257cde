import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { EmbeddedOptions } from '../../src/embedded/postgres.ts';
import { isPostmaster } from '../../src/embedded/postmaster.ts';
import { type ChildNode, type ChildOptions, spawnNode } from './child-process.ts';
import { built } from './crash.ts';

/** Imports before it becomes somebody else, who may not be let through to the checkout. */
const PROGRAM = `
const { startEmbeddedPostgres } = await import(process.env.MODULE);
await import('pg');
if (process.env.AS_USER) {
  process.setgroups([]);
  process.setgid(Number(process.env.AS_USER));
  process.setuid(Number(process.env.AS_USER));
}
if (process.env.PLATFORM) Object.defineProperty(process, 'platform', { value: process.env.PLATFORM });
process.on('SIGINT', () => console.log('interrupted'));
try {
  const server = await startEmbeddedPostgres({
    ...JSON.parse(process.env.OPTIONS),
    onRestart: (reason) => console.log('restarted ' + reason),
  });
  process.on('SIGTERM', () => server.stop().then(() => process.exit(0)));
  console.log('up ' + JSON.stringify({ url: server.url, port: server.port, dir: server.dir }));
  if (!process.env.LEAVE) setInterval(() => {}, 1000);
} catch (error) {
  console.log('failed ' + JSON.stringify({ code: error.code, message: error.message, hint: error.hint }));
}
`;

export interface Up {
  readonly url: string;
  readonly port: number;
  readonly dir: string;
}

export interface EmbeddedProcess extends ChildNode {
  up(): Promise<Up>;
  failed(): Promise<{ code: string; message: string; hint: string }>;
}

export interface ProgramEnv {
  /** Becomes this user before it starts. */
  AS_USER?: string;
  /** Takes itself to be on this platform. */
  PLATFORM?: string;
  /** Does nothing after the start, so that the process ends when nothing keeps it. */
  LEAVE?: string;
  LANG?: string | undefined;
  LC_ALL?: string | undefined;
  HOME?: string;
}

/** A process that starts or joins the embedded PostgreSQL and then waits. SIGTERM: `stop()` and exit. */
export function spawnEmbedded(
  options: Pick<EmbeddedOptions, 'dir' | 'port' | 'durable' | 'packageDir'>,
  env: ProgramEnv = {},
  child: Omit<ChildOptions, 'env'> = {},
): EmbeddedProcess {
  const spawned = spawnNode(['--input-type=module', '-e', PROGRAM], {
    ...child,
    env: {
      ...env,
      MODULE: pathToFileURL(built('embedded/postgres.js')).href,
      OPTIONS: JSON.stringify({ durable: false, ...options }),
    },
  });
  async function said<T>(word: string): Promise<T> {
    const line = await spawned.waitForLine(new RegExp(`^${word} `), { timeoutMs: 60_000 });
    return JSON.parse(line.slice(word.length + 1));
  }
  return { ...spawned, up: () => said('up'), failed: () => said('failed') };
}

export interface Server {
  readonly pid: number;
  runs(): Promise<boolean>;
}

/** The process of the server whose files are in `dir`. */
export async function serverOf(dir: string): Promise<Server> {
  const data = join(dir, 'cluster', 'data');
  const pid = Number.parseInt(await readFile(join(data, 'postmaster.pid'), 'utf8'), 10);
  return { pid, runs: () => isPostmaster(pid, data) };
}
