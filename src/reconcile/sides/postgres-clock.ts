import { type Instant, parseInstant } from '../instant.ts';
import { type SideClock, SideError } from '../side.ts';
import { APPLICATION_NAME, type Snapshot } from './postgres-session.ts';

/**
 * Sessions that may still write records of this database: all but sides' own read-only ones and vacuum workers. A row
 * whose details are hidden from this user could hide a transaction too.
 */
const SESSIONS = `
  select min(xact_start),
         count(*) filter (where query = '<insufficient privilege>' or state = 'disabled') > 0,
         pg_is_in_recovery(),
         (select min(prepared) from pg_prepared_xacts where database = current_database())
    from pg_stat_activity
   where datname = current_database()
     and pid <> pg_backend_pid()
     and application_name <> '${APPLICATION_NAME}'
     and (backend_type is null or backend_type <> 'autovacuum worker')`;

/**
 * The server's clock and the oldest transaction that may still write (rule 5.8). The clock is read first: a
 * transaction that starts in between begins later than `now` and can do no harm.
 */
export async function readClock(snapshot: Snapshot, where: string): Promise<SideClock> {
  const [[now = null] = []] = (await snapshot.query('select clock_timestamp()')).rows;
  const [[oldest = null, hidden = null, standby = null, prepared = null] = []] = (
    await snapshot.query(SESSIONS)
  ).rows;
  if (standby === 't') return { now: instant(now, where), oldestOpen: null, seesTransactions: false };
  const open = [oldest, prepared].filter((text) => text !== null).map((text) => instant(text, where));
  return {
    now: instant(now, where),
    oldestOpen: open.reduce<Instant | null>((a, b) => (a === null || b < a ? b : a), null),
    seesTransactions: hidden === 'f',
  };
}

function instant(text: string | null, where: string): Instant {
  const read = text === null ? undefined : parseInstant(text);
  if (read !== undefined) return read;
  throw new SideError('TRU_SIDE_BROKEN_ANSWER', where, `"${text}" is no time`, { transient: false });
}
