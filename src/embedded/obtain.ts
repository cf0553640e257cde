import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, TrueupError } from '../error.ts';
import { type Cluster, storedPort, storePort } from './cluster.ts';
import { adopt, type Launched, launch, type Owned } from './launch.ts';
import { look, type Session } from './look.ts';
import { sparePort } from './spare-port.ts';

export interface Obtained {
  readonly session: Session;
  /** Set when the server ends with this process, undefined when another process owns it. */
  readonly owned: Owned | undefined;
}

export interface ObtainOptions {
  readonly durable: boolean;
  /** The port to start on. The last one used when left out. */
  readonly port?: number | undefined;
  /** Do not move to another port: clients hold the address already. */
  readonly fixedPort: boolean;
  readonly signal: AbortSignal;
}

const POLL_MS = 20;
/** Without a sign of life for this long the start has failed. */
const SILENT_MS = 60_000;
/** The limit while the server says that it is starting or stopping: recovery after a crash takes its time. */
const COMING_MS = 15 * 60_000;
const PORT_TRIES = 5;

/** The owner's session holds this advisory lock, so that others see that the server has an owner. */
const OWNER_LOCK = 7_728_001;
/** An owner takes the lock as soon as it is connected: a server without it for this long is an orphan. */
const ORPHAN_CHECKS = 10;
const ORPHAN_CHECK_MS = 100;

/** Joins the running server of the cluster, or starts it. Throws `TRU_EMBEDDED_START`, `TRU_EMBEDDED_PORT`. */
export async function obtain(cluster: Cluster, options: ObtainOptions): Promise<Obtained> {
  let launched: Launched | undefined;
  let portsTaken = 0;
  const began = Date.now();
  let trouble: unknown = 'nothing was seen of it';
  try {
    for (;;) {
      options.signal.throwIfAborted();
      const seen = await look(cluster);
      if (seen.kind === 'running') return await settle(cluster, seen.session, launched, options.signal);
      if (seen.kind === 'busy') trouble = seen.error;
      if (launched?.exited()) {
        trouble = launched.log();
        const why = reasonOf(launched.log());
        if (why === 'port' && ++portsTaken >= PORT_TRIES) throw portTaken(launched.port);
        if (why === 'failed') throw failed(cluster, trouble);
        launched = undefined;
      }
      if (Date.now() - began > (seen.kind === 'busy' && seen.coming ? COMING_MS : SILENT_MS))
        throw failed(cluster, launched?.log() || trouble);
      if (seen.kind === 'absent' && launched === undefined) {
        const port = await choosePort(cluster, options, portsTaken > 0);
        launched = launch(cluster, port, options.durable);
      }
      await sleep(POLL_MS);
    }
  } catch (error) {
    await launched?.end();
    throw error;
  }
}

/** Connected: finds out whether the server is ours, somebody else's or nobody's. */
async function settle(
  cluster: Cluster,
  session: Session,
  launched: Launched | undefined,
  signal: AbortSignal,
): Promise<Obtained> {
  if (launched !== undefined && launched.pid() === session.pid) {
    await session.client.query('select pg_try_advisory_lock($1)', [OWNER_LOCK]);
    await storePort(cluster, session.port);
    return { session, owned: launched };
  }
  // Ours lost the race for the data directory and ends by itself.
  await launched?.end();
  for (let check = 0; check < ORPHAN_CHECKS; check++) {
    if (await hasOwner(session)) return { session, owned: undefined };
    await sleep(ORPHAN_CHECK_MS, undefined, { signal });
  }
  const { rows } = await session.client.query<{ mine: boolean }>('select pg_try_advisory_lock($1) as mine', [
    OWNER_LOCK,
  ]);
  return { session, owned: rows[0]?.mine ? adopt(session.pid, cluster) : undefined };
}

async function hasOwner({ client }: Session): Promise<boolean> {
  const { rowCount } = await client.query(
    `select from pg_locks where locktype = 'advisory' and objid = $1 and granted limit 1`,
    [OWNER_LOCK],
  );
  return rowCount === 1;
}

async function choosePort(cluster: Cluster, options: ObtainOptions, taken: boolean): Promise<number> {
  if (taken && !options.fixedPort) return sparePort();
  return options.port ?? (await storedPort(cluster)) ?? sparePort();
}

/** PostgreSQL says in its log only why it did not start. `lc_messages` is C, so the words are these. */
function reasonOf(log: string): 'port' | 'race' | 'failed' {
  if (/Address already in use/.test(log)) return 'port';
  // The second is the memory of a killed server whose last processes are just ending.
  if (/postmaster\.pid" (already exists|is empty)/.test(log)) return 'race';
  if (/pre-existing shared memory block .* is still in use/.test(log)) return 'race';
  return 'failed';
}

function failed(cluster: Cluster, trouble: unknown): TrueupError {
  const log = trouble instanceof Error ? trouble.message : String(trouble).trim();
  return new TrueupError('TRU_EMBEDDED_START', `PostgreSQL did not start on ${cluster.data}:\n${log}`, {
    hint: 'mend what its log says, or set DATABASE_URL to a PostgreSQL server',
  });
}

function portTaken(port: number): TrueupError {
  return new TrueupError(
    'TRU_EMBEDDED_PORT',
    `another program took port ${port} of the embedded PostgreSQL`,
    {
      exit: EXIT.temporary,
      hint: 'end that program, or start trueup again to move to another port',
    },
  );
}
