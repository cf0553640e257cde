import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import type { RunAs } from './home.ts';
import { ADOPT, OWN, SERVER_ENV } from './owned-process.ts';
import { isPostmaster } from './postmaster.ts';

/** A server that ends with this process. */
export interface Owned {
  /** Process id of the postmaster. Undefined until the shell has said it. */
  pid(): number | undefined;
  /** Shuts the server down (sessions are cut, data is safe) and waits until it is gone. */
  end(): Promise<void>;
  /** The server is gone already: ends what is left of watching it. */
  forget(): void;
}

export interface Launched extends Owned {
  readonly port: number;
  exited(): boolean;
  /** The last that the server wrote to its log. */
  log(): string;
}

/** A fast shutdown writes a checkpoint. If it takes longer than this, the next start recovers instead. */
const SHUTDOWN_MS = 30_000;
const LOG_CHARS = 8192;

const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=200',
  'shared_buffers=64MB',
  'autovacuum=on',
  'timezone=UTC',
  // Without the statements' own errors: these reach whoever sent the statement, and may hold data.
  'log_min_messages=log',
  'log_destination=stderr',
];
/** Still survives a killed server; only the machine must not fail. */
const UNSAFE = ['fsync=off', 'full_page_writes=off'];

/** Starts the server without waiting for it. It is detached: Ctrl-C in the terminal does not reach it. */
export function launch(cluster: Cluster, port: number, durable: boolean): Launched {
  const settings = durable ? SETTINGS : [...SETTINGS, ...UNSAFE];
  const child = shell(
    [OWN, cluster.binaries.postgres, '-D', cluster.data, '-p', String(port)].concat(
      settings.flatMap((setting) => ['-c', setting]),
    ),
    cluster.home.runAs,
  );
  let pid: number | undefined;
  let log = '';
  let exited = false;
  child.stdout.setEncoding('utf8').once('data', (line: string) => {
    pid = Number(line);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-LOG_CHARS);
  });
  child.once('error', (error) => {
    exited = true;
    log += error.message;
  });
  // Not `exit`: the last words of the server may still be in the pipe.
  child.once('close', () => {
    exited = true;
  });
  return {
    port,
    pid: () => pid,
    exited: () => exited,
    log: () => log,
    async end() {
      child.ref();
      child.stdin.end();
      await until(() => exited, pid, cluster.data);
    },
    // Its shell waits for the server and so is gone with it.
    forget() {},
  };
}

/** Takes over a running server whose owner died without taking it along. */
export function adopt(pid: number, cluster: Cluster): Owned {
  // As the server's user, so that it can never end a process of anybody else, should the number be used again.
  const child = shell([ADOPT, String(pid)], cluster.home.runAs);
  child.stdout.resume();
  child.stderr.resume();
  return {
    pid: () => pid,
    async end() {
      child.stdin.end();
      await until(async () => !(await isPostmaster(pid, cluster.data)), pid, cluster.data);
    },
    forget() {
      child.kill();
    },
  };
}

function shell(args: string[], runAs: RunAs): ChildProcessByStdio<Writable, Readable, Readable> {
  const child = spawn('/bin/sh', ['-c', ...args], {
    ...runAs,
    cwd: '/',
    env: SERVER_ENV,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  // The pipe breaks when the shell ends first, which its exit reports.
  child.stdin.on('error', () => child.stdin.destroy());
  child.unref();
  for (const stream of [child.stdin, child.stdout, child.stderr])
    if ('unref' in stream && typeof stream.unref === 'function') stream.unref();
  return child;
}

async function until(
  gone: () => boolean | Promise<boolean>,
  pid: number | undefined,
  data: string,
): Promise<void> {
  let patience = Date.now() + SHUTDOWN_MS;
  while (!(await gone())) {
    if (Date.now() > patience && pid !== undefined && (await isPostmaster(pid, data))) {
      process.kill(pid, 'SIGQUIT');
      patience = Date.now() + SHUTDOWN_MS;
    }
    await sleep(10);
  }
}
