import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { addMillis, earliest, type Instant, parseInstant } from '../instant.ts';
import { type SideClock, SideError } from '../side.ts';
import { isForbidden } from './mysql-errors.ts';
import type { Snapshot } from './mysql-session.ts';

/**
 * Transactions of the whole server that may still write. InnoDB shows their start in the zone of the server's own
 * machine and in whole seconds. Of a time that the machine's clock had twice, the earlier one is taken. The list is
 * kept for as long as somebody reads it ten times a second; only one that shows this very statement is new enough.
 */
const transactions = (nonce: string) => `
  select '${nonce}', max(mine),
         min(case when convert_tz(utc - interval 1 hour, '+00:00', 'SYSTEM') = started
                  then utc - interval 1 hour else utc end)
    from (select trx_mysql_thread_id = connection_id() and locate('${nonce}', trx_query) > 0 as mine,
                 if(trx_is_read_only, null, trx_started) as started,
                 if(trx_is_read_only, null, convert_tz(trx_started, 'SYSTEM', '+00:00')) as utc
            from information_schema.innodb_trx) as open`;

/** Pauses, growing and by chance, so that several readers of the list leave each other the room it needs. */
const PAUSES_MS = [120, 180, 270, 405, 610, 910, 1370];

/** Statements that wait for a lock before their transaction has begun; `now()` in them is the time they came. */
const WAITING = `
  select max(time) from information_schema.processlist
   where id <> connection_id() and state like 'Waiting for%lock%'`;

/**
 * The server's clock and the oldest transaction that may still write (rule 5.8). The clock is read first: a
 * transaction that starts in between begins later than `now` and can do no harm. On a replica the clock is that of
 * what it has applied, and the transactions are those of another server.
 */
export async function readClock(snapshot: Snapshot, where: string, signal: AbortSignal): Promise<SideClock> {
  const now = instant((await snapshot.query('select utc_timestamp(6)')).rows[0]?.[0], where);
  const replica = await replicaState(snapshot);
  if (replica.kind === 'replica') {
    if (replica.lagSeconds === null) throw stopped(where);
    return { now: addMillis(now, -replica.lagSeconds * 1000), oldestOpen: null, seesTransactions: false };
  }
  const started = await allowed(() => oldestTransaction(snapshot, where, signal));
  if (started === undefined || replica.kind === 'hidden') {
    return { now, oldestOpen: null, seesTransactions: false };
  }
  const [[waited = null] = []] = (await snapshot.query(WAITING)).rows;
  const open = [
    ...(started === null ? [] : [started]),
    // Whole seconds, cut.
    ...(waited === null ? [] : [addMillis(now, -(Number(waited.toString()) + 1) * 1000)]),
  ];
  const [first, ...others] = open;
  return { now, oldestOpen: first === undefined ? null : earliest(first, ...others), seesTransactions: true };
}

async function oldestTransaction(
  snapshot: Snapshot,
  where: string,
  signal: AbortSignal,
): Promise<Instant | null> {
  for (const pause of [...PAUSES_MS, null]) {
    const [row = []] = (await snapshot.query(transactions(`trueup ${randomUUID()}`))).rows;
    const [, mine = null, oldest = null] = row;
    if (mine?.toString() === '1') return oldest === null ? null : instant(oldest, where);
    if (pause === null) break;
    await sleep(pause * (0.75 + Math.random() / 2), undefined, { signal }).catch(() =>
      signal.throwIfAborted(),
    );
  }
  throw stale(where);
}

export type ReplicaState =
  | { readonly kind: 'primary' }
  /** This user may not ask, and the server refuses writes: it is probably a replica. */
  | { readonly kind: 'hidden' }
  /** Null when it does not follow its primary at the moment. */
  | { readonly kind: 'replica'; readonly lagSeconds: number | null };

export async function replicaState(snapshot: Snapshot): Promise<ReplicaState> {
  const status = await allowed(() => replicaStatus(snapshot));
  if (status === undefined) {
    const [[readOnly = null] = []] = (await snapshot.query('select @@global.read_only')).rows;
    return readOnly?.toString() === '0' ? { kind: 'primary' } : { kind: 'hidden' };
  }
  const at = status.fields.findIndex(({ name }) => /^seconds_behind_(master|source)$/i.test(name));
  return lagOf(status.rows.map((row) => row[at]?.toString() ?? null));
}

/** One row per channel. The server counts whole seconds, cut. */
export function lagOf(channels: readonly (string | null)[]): ReplicaState {
  if (channels.length === 0) return { kind: 'primary' };
  const seconds = channels.map((text) => (text === null || !/^\d+$/.test(text) ? null : Number(text) + 1));
  if (seconds.includes(null)) return { kind: 'replica', lagSeconds: null };
  return { kind: 'replica', lagSeconds: Math.max(...seconds.map(Number)) };
}

/** MySQL before 8.0.22 and MariaDB before 10.5 know only the old word; MariaDB shows all channels by a third one. */
async function replicaStatus(snapshot: Snapshot) {
  if (snapshot.flavour === 'mariadb') return snapshot.query('show all slaves status');
  try {
    return await snapshot.query('show replica status');
  } catch (error) {
    if (error instanceof SideError && error.code === 'TRU_SIDE_MISCONFIGURED') {
      return snapshot.query('show slave status');
    }
    throw error;
  }
}

/** Undefined when this user may not ask. */
async function allowed<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
}

function instant(cell: Buffer | null | undefined, where: string): Instant {
  const text = cell?.toString() ?? '';
  const read = parseInstant(`${text}Z`);
  if (read !== undefined) return read;
  throw new SideError('TRU_SIDE_BROKEN_ANSWER', where, `"${text}" is no time`, { transient: false });
}

function stale(where: string): SideError {
  const message =
    'somebody reads information_schema.innodb_trx so often that the server never renews it, so open transactions cannot be told';
  return new SideError('TRU_SIDE_UNREACHABLE', where, message, { transient: true });
}

function stopped(where: string): SideError {
  const message = 'this replica does not follow its primary at the moment, so what it holds may be old';
  return new SideError('TRU_SIDE_UNREACHABLE', where, message, { transient: true });
}
