import type { Instant } from '../reconcile/instant.ts';
import { COLUMNS, type Compensation, type CompensationRow, fromRow } from './compensation-row.ts';
import type { Db } from './database.ts';

/** Rows on their way from the ledger to the queue. */

/**
 * Rule 6.6: planned rows that are first in line for their key become ready, oldest first. Two promoters at once are
 * kept apart by the unique index and by skipping locked rows; what one of them skips, the next sweep promotes.
 */
export async function promotePlanned(db: Db, limit: number): Promise<number> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `with first as (
       select c.id from compensation c
        where c.state = 'planned'
          and not exists (select from compensation o
                           where o.target = c.target and o.order_scope = c.order_scope
                             and o.business_key = c.business_key and o.id <> c.id
                             and (o.state in ('ready', 'queued', 'sending', 'retrying', 'deferred', 'unknown', 'applied')
                                  or (o.state = 'escalated' and o.last_unknown)
                                  or (o.state in ('planned', 'held') and o.id < c.id)))
        order by c.id limit :limit for update skip locked)
     update compensation set state = 'ready', due_at = clock_timestamp(), waiting_since = clock_timestamp()
       from first where compensation.id = first.id returning compensation.id`,
    { limit },
  );
  return rows.length;
}

export interface Dispatched {
  readonly id: string;
  readonly ring: number;
  readonly retry: boolean;
}

/**
 * Moves due rows of a target from the ledger to "queued", each with a new ring number (rule 6.19), those first that
 * are due longest, so that no row is passed over for ever by others that come back. A row is a retry when an attempt
 * of it counted, whatever state it comes from: one that was put back, held or lost its ring stays one. Retries get at
 * least one place and at most one in five while fresh work is ready; idle shares go to whoever waits (rule 6.13).
 * `paced`: runs with a watermark of their own -> how many of these places they may have.
 */
export async function dispatchDue(
  db: Db,
  target: string,
  places: number,
  ringMs: number,
  paced: ReadonlyMap<string, number> = new Map(),
): Promise<Dispatched[]> {
  if (places < 1) return [];
  const take = async (attempts: Attempts): Promise<string[]> => {
    const due = await dueRows(db, target, attempts, places, { except: [...paced.keys()] });
    for (const [run, most] of paced)
      due.push(...(await dueRows(db, target, attempts, Math.min(places, most), { run })));
    if (paced.size > 0) due.sort(byDue);
    return due.slice(0, places).map((row) => row.id);
  };
  const retries = await take('attempts > 0');
  const fresh = await take('attempts = 0');
  const retryPlaces = Math.max(places - fresh.length, retryShare(places));
  const chosenRetries = retries.slice(0, Math.min(retryPlaces, places));
  const chosenFresh = fresh.slice(0, places - chosenRetries.length);
  if (chosenRetries.length + chosenFresh.length === 0) return [];
  const { rows } = await db.raw<{ rows: { id: string; ring: number; retry: boolean }[] }>(
    `update compensation set state = 'queued', ring = ring + 1,
            ring_until = clock_timestamp() + ? * interval '1 millisecond'
      where id = any(?) returning id, ring, attempts > 0 as retry`,
    [ringMs, [...chosenRetries, ...chosenFresh]],
  );
  return rows.sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
}

type Attempts = 'attempts = 0' | 'attempts > 0';

interface DueRow {
  readonly id: string;
  readonly due_at: Instant;
}

/** Due rows of one run, or of all but some, those first that are due longest. */
async function dueRows(
  db: Db,
  target: string,
  attempts: Attempts,
  limit: number,
  runs: { readonly run: string } | { readonly except: readonly string[] },
): Promise<DueRow[]> {
  if (limit < 1) return [];
  const [ofRuns, bindings] =
    'run' in runs
      ? ['and run_id = ?', [runs.run]]
      : runs.except.length === 0
        ? ['', []]
        : ['and (run_id is null or run_id <> all(?))', [[...runs.except]]];
  const { rows } = await db.raw<{ rows: DueRow[] }>(
    `select id, due_at from compensation
      where target = ? and state in ('ready', 'retrying', 'deferred') and ${attempts}
        and due_at <= clock_timestamp() ${ofRuns}
      order by due_at, id limit ? for update skip locked`,
    [target, ...bindings, limit],
  );
  return rows;
}

function byDue(a: DueRow, b: DueRow): number {
  if (a.due_at !== b.due_at) return a.due_at < b.due_at ? -1 : 1;
  return BigInt(a.id) < BigInt(b.id) ? -1 : 1;
}

/** One in five; with fewer places than five a retry gets one of them one time in so many. */
function retryShare(places: number): number {
  return Math.floor(places / 5 + Math.random());
}

export interface TargetLoad {
  readonly queued: number;
  readonly sending: number;
}

export async function targetLoads(db: Db): Promise<Map<string, TargetLoad>> {
  const { rows } = await db.raw<{ rows: { target: string; queued: number; sending: number }[] }>(
    `select target, (count(*) filter (where state = 'queued'))::int as queued,
            (count(*) filter (where state = 'sending'))::int as sending
       from compensation where state in ('queued', 'sending') group by target`,
  );
  return new Map(rows.map((row) => [row.target, { queued: row.queued, sending: row.sending }]));
}

/** Those of the targets that have anything to dispatch now. */
export async function targetsWithDueWork(db: Db, targets: readonly string[]): Promise<string[]> {
  const due = (attempts: string) =>
    `exists (select from compensation c
              where c.target = t.target and c.state in ('ready', 'retrying', 'deferred') and ${attempts}
                and c.due_at <= clock_timestamp())`;
  const { rows } = await db.raw<{ rows: { target: string }[] }>(
    `select t.target from unnest(?::text[]) as t(target) where ${due('attempts = 0')} or ${due('attempts > 0')}`,
    [[...targets]],
  );
  return rows.map((row) => row.target);
}

/** Targets that have rows in the ledger and are none of these. */
export async function targetsOtherThan(db: Db, targets: readonly string[]): Promise<string[]> {
  const rows: { target: string }[] = await db('compensation')
    .whereIn('state', ['ready', 'deferred', 'retrying'])
    .whereNotIn('target', [...targets])
    .distinct('target');
  return rows.map((row) => row.target);
}

/** Rows that wait for their gate since this moment (epoch ms of the store's clock) or longer. */
export async function waitingSince(
  db: Db,
  target: string,
  sinceMs: number,
  limit: number,
): Promise<Compensation[]> {
  const { rows } = await db.raw<{ rows: CompensationRow[] }>(
    `select ${COLUMNS} from compensation
      where target = ? and state in ('ready', 'retrying', 'deferred')
        and coalesce(waiting_since, created_at) <= to_timestamp(?::float8 / 1000)
      order by coalesce(waiting_since, created_at), id limit ?`,
    [target, sinceMs, limit],
  );
  return rows.map(fromRow);
}
