import { link, readFile, rename, rm, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import type { Cluster } from './cluster.ts';
import { codeOf } from './file-error.ts';
import { isInUse, isPostmaster } from './postmaster.ts';

/** One connection to the running server. */
export interface Session {
  readonly client: pg.Client;
  /** Under the client. Unref it while the connection is idle: it must not keep this process alive. */
  readonly socket: Socket;
  readonly pid: number;
  readonly port: number;
  /** When the server started: tells a restart from a lost connection. */
  readonly startedAt: string;
  /** Settles when the connection is gone, with the reason. */
  readonly ended: Promise<string>;
}

export type Seen =
  | { readonly kind: 'absent' }
  /** A server holds the data directory and does not let us in (yet). `coming`: it says that it is starting or stopping. */
  | { readonly kind: 'busy'; readonly coming: boolean; readonly error: unknown }
  | { readonly kind: 'running'; readonly session: Session };

const CONNECT_MS = 5_000;
/** PostgreSQL writes its lock file in one go. An unreadable one that is older stems from a crash in that moment. */
const HALF_WRITTEN_MS = 5_000;
const CANNOT_CONNECT_NOW = '57P03';

/**
 * Looks for a running server of this data directory. What PostgreSQL wrote into its own lock file is the truth about
 * process and port, so nothing that we write can contradict it.
 */
export async function look(cluster: Cluster): Promise<Seen> {
  const lock = await readLock(cluster.data);
  if (lock.kind === 'none') return { kind: 'absent' };
  if (lock.kind === 'unreadable') {
    if (lock.ageMs < HALF_WRITTEN_MS)
      return { kind: 'busy', coming: false, error: 'its lock file is not whole' };
    await removeStale(cluster.data, lock.text);
    return { kind: 'absent' };
  }
  // PostgreSQL removes the lock of a dead process itself, but not when another program got its number since.
  if (!isInUse(lock.pid)) return { kind: 'absent' };
  if (!(await isPostmaster(lock.pid, cluster.data))) {
    await removeStale(cluster.data, lock.text);
    return { kind: 'absent' };
  }
  if (lock.status !== 'ready')
    return { kind: 'busy', coming: lock.status !== '', error: `it is ${lock.status || 'about to start'}` };
  try {
    return { kind: 'running', session: await connect(cluster, lock.pid, lock.port) };
  } catch (error) {
    return { kind: 'busy', coming: codeOf(error) === CANNOT_CONNECT_NOW, error };
  }
}

async function connect(cluster: Cluster, pid: number, port: number): Promise<Session> {
  const socket = new Socket();
  const client = new pg.Client({
    host: '127.0.0.1',
    port,
    user: 'postgres',
    password: cluster.password,
    database: 'postgres',
    application_name: 'trueup embedded',
    connectionTimeoutMillis: CONNECT_MS,
    stream: () => socket,
  });
  let reason = 'the connection to it ended';
  client.on('error', (error) => {
    reason = error.message;
  });
  const ended = new Promise<string>((done) => {
    client.once('end', () => done(reason));
  });
  try {
    await client.connect();
    const { rows } = await client.query<{ data: string; started: string }>(
      `select current_setting('data_directory') as data, pg_postmaster_start_time()::text as started`,
    );
    const [row] = rows;
    if (row?.data !== cluster.data) throw new Error(`port ${port} belongs to the server of ${row?.data}`);
    return { client, socket, pid, port, ended, startedAt: row.started };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

type Lock =
  | { readonly kind: 'none' }
  | { readonly kind: 'unreadable'; readonly text: string; readonly ageMs: number }
  | {
      readonly kind: 'held';
      readonly text: string;
      readonly pid: number;
      readonly port: number;
      /** `starting`, `ready` or `stopping`. Empty before the server has its port. */
      readonly status: string;
    };

async function readLock(data: string): Promise<Lock> {
  const path = join(data, 'postmaster.pid');
  try {
    const text = await readFile(path, 'utf8');
    // The lines of `postmaster.pid`, documented in PostgreSQL's own pidfile.h.
    const lines = text.split('\n');
    const [pid, port, status = ''] = [Number(lines[0]), Number(lines[3]), lines[7]?.trim()];
    if (pid > 0 && port > 0) return { kind: 'held', text, pid, port, status };
    return { kind: 'unreadable', text, ageMs: Date.now() - (await stat(path)).mtimeMs };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return { kind: 'none' };
    throw error;
  }
}

/** Removes the lock file only if it is still the one that was judged: another starter may have written a new one. */
async function removeStale(data: string, judged: string): Promise<void> {
  const path = join(data, 'postmaster.pid');
  const aside = join(data, `postmaster.pid.stale-${process.pid}`);
  try {
    if ((await readFile(path, 'utf8')) !== judged) return;
    await rename(path, aside);
    if ((await readFile(aside, 'utf8')) !== judged) await link(aside, path);
    await rm(aside);
  } catch (error) {
    // Gone, or written anew, by another starter: then there is nothing left to do.
    if (!['ENOENT', 'EEXIST'].includes(codeOf(error))) throw error;
  }
}
