import type { AlertMessage } from './alert-state.ts';
import { type Db, inTransaction, only } from './database.ts';

/** A message in the hands of one worker until it is recorded, released, or its lease ends. */
export interface ClaimedMessage {
  readonly id: string;
  /** Tries, this one included. Fences what is recorded. */
  readonly attempts: number;
  readonly message: AlertMessage;
}

/** What a channel has to do. */
export interface ChannelLoad {
  readonly waiting: number;
  /** Tries that the oldest waiting message had already. */
  readonly headAttempts: number;
  /** Sends in the last 60 seconds, failed ones included. */
  readonly recentSends: number;
}

/**
 * Takes the oldest waiting messages of a channel for `leaseMs` and counts the try at its start, so that a crash is
 * a try. How many is decided by `size` from the channel's load, under the channel's lock, so that several workers keep
 * one rate. Nothing is given while another worker holds a message of the channel (order) or the channel backs off.
 */
export async function claimMessages(
  db: Db,
  channel: string,
  size: (load: ChannelLoad) => number,
  leaseMs: number,
): Promise<ClaimedMessage[]> {
  return inTransaction(db, async (trx) => {
    if (!(await lockChannel(trx, channel))) return [];
    const load = await channelLoad(trx, channel);
    const limit = load === null ? 0 : size(load);
    if (limit < 1) return [];
    const { rows } = await trx.raw<{ rows: ClaimedMessage[] }>(
      `with next as (
         select id from alert_message where channel = :channel and state = 'waiting'
          order by id limit :limit for update skip locked)
       update alert_message m set attempts = attempts + 1,
              lease_until = clock_timestamp() + :leaseMs * interval '1 millisecond'
         from next where m.id = next.id returning m.id, m.attempts, m.message`,
      { channel, limit, leaseMs },
    );
    return [...rows].sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
  });
}

/** False while another worker claims from the same channel. */
async function lockChannel(db: Db, channel: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { locked: boolean }[] }>(
    'select pg_try_advisory_xact_lock(hashtextextended(?, 2)) as locked',
    [channel],
  );
  return only(rows).locked;
}

/**
 * Null while a message of the channel is leased, or has failed and is not due yet. `lease_until` of a message that
 * is not leased is the end of its last try.
 */
async function channelLoad(db: Db, channel: string): Promise<ChannelLoad | null> {
  const { rows } = await db.raw<{ rows: (ChannelLoad & { readonly busy: boolean })[] }>(
    `select (count(*) filter (where state = 'waiting'))::int as waiting,
            coalesce((array_agg(attempts order by id) filter (where state = 'waiting'))[1], 0) as "headAttempts",
            (count(distinct coalesce(sent_at, lease_until)) filter (
               where coalesce(sent_at, lease_until) > now() - interval '60 seconds'))::int as "recentSends",
            coalesce(bool_or(state = 'waiting' and (lease_until > clock_timestamp()
               or (attempts > 0 and due_at > clock_timestamp()))), false) as busy
       from alert_message
      where channel = ? and (state = 'waiting' or coalesce(sent_at, lease_until) > now() - interval '60 seconds')`,
    [channel],
  );
  const { busy, ...load } = only(rows);
  return busy ? null : load;
}

/** Delivered. Not fenced: that the channel took the message is true whoever holds it now. */
export async function recordSent(db: Db, claimed: readonly ClaimedMessage[]): Promise<void> {
  await db.raw(
    `update alert_message set state = 'sent', sent_at = now(), lease_until = null, error = null
      where id = any(?) and state <> 'sent'`,
    [claimed.map(({ id }) => id)],
  );
}

/** Not delivered: due again in `dueInMs`, or given up when the channel refused it for good (`dueInMs` null). */
export async function recordFailure(
  db: Db,
  claimed: readonly ClaimedMessage[],
  { reason, dueInMs }: { reason: string; dueInMs: number | null },
): Promise<void> {
  await db.raw(
    `update alert_message m
        set state = case when :dueInMs::float8 is null then 'failed' else 'waiting' end,
            due_at = clock_timestamp() + coalesce(:dueInMs::float8, 0) * interval '1 millisecond',
            lease_until = now(), error = :reason
       from unnest(:ids::bigint[], :attempts::int[]) as c(id, attempts)
      where m.id = c.id and m.attempts = c.attempts and m.state = 'waiting'`,
    { ...fence(claimed), reason: reason.replaceAll('\u0000', '\ufffd'), dueInMs },
  );
}

/** Given back untried, at a shutdown: anybody may take them at once. */
export async function releaseMessages(db: Db, claimed: readonly ClaimedMessage[]): Promise<void> {
  await db.raw(
    `update alert_message m set attempts = m.attempts - 1, lease_until = null
       from unnest(:ids::bigint[], :attempts::int[]) as c(id, attempts)
      where m.id = c.id and m.attempts = c.attempts and m.state = 'waiting'`,
    fence(claimed),
  );
}

function fence(claimed: readonly ClaimedMessage[]): { ids: string[]; attempts: number[] } {
  return { ids: claimed.map(({ id }) => id), attempts: claimed.map(({ attempts }) => attempts) };
}
