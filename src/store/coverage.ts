import type { Instant } from '../reconcile/instant.ts';
import type { Window } from '../reconcile/record.ts';
import type { Db } from './database.ts';

/** Up to here every record was read and has a stored verdict or is a stored suspect; null before the first run. */
export async function readCoverage(db: Db, reconciliation: string): Promise<Instant | null> {
  const row: { covered_to: Instant } | undefined = await db('coverage')
    .where({ reconciliation })
    .first('covered_to');
  return row?.covered_to ?? null;
}

/**
 * Rule 5.10: coverage becomes the later of itself and `window.to`, but only when it reached `window.from`, else the
 * records between would never be read. Where there is none yet, only a scheduled run's window founds it (`founds`): a
 * window that a person chose says nothing about the times before it. False when nothing changed. Call in the
 * transaction that stores the window's suspects, and never for an incomplete reading.
 */
export async function moveCoverage(
  db: Db,
  reconciliation: string,
  window: Window,
  { founds }: { founds: boolean },
): Promise<boolean> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `insert into coverage as c (reconciliation, covered_to)
     select :reconciliation, :to
      where :founds or exists (select from coverage known where known.reconciliation = :reconciliation)
     on conflict (reconciliation) do update
        set covered_to = greatest(c.covered_to, excluded.covered_to), updated_at = clock_timestamp()
      where c.covered_to >= :from
     returning covered_to`,
    { reconciliation, from: window.from, to: window.to, founds },
  );
  return rows.length === 1;
}

/**
 * Up to here nothing is open, never beyond coverage; null without coverage. It stands before the oldest suspect that
 * waits or that a run confirmed and did not conclude (a held one too), before the oldest undecided record, and before
 * the oldest open or failed diff. An undecided record counts until a later complete run has read its time again. A
 * record without a time counts from the start of the chunk that showed it first.
 */
export async function readProven(db: Db, reconciliation: string): Promise<Instant | null> {
  const { rows } = await db.raw<{ rows: { proven: Instant | null }[] }>(
    `with unfinished as (
       select coalesce(s.record_time, s.not_before, r.window_from, s.first_seen) as at
         from run r join suspect s on s.run_id = r.id
        where r.reconciliation = :reconciliation
          and (r.phase <> 'done' and s.state in ('waiting', 'confirmed')
               or r.result in ('incomplete', 'failed') and s.state = 'confirmed')),
     undecided as (
       select coalesce(s.record_time, s.not_before, r.window_from, s.first_seen) as at
         from suspect s join run r on r.id = s.run_id
        where s.reconciliation = :reconciliation and s.state in ('waiting', 'undecided')
          and not exists (
            select from run later
             where later.reconciliation = s.reconciliation and later.id > s.run_id and later.result = 'complete'
               and later.window_from <= coalesce(s.record_time, s.not_before, r.window_from)
               and (later.window_to > s.record_time or s.record_time is null and later.window_to >= r.window_to))),
     -- Apart, so that the oldest of a million dated diffs is one look into an index.
     unrepaired as (
       select min(coalesce(d.record_time, d.not_before)) as at
         from diff d where d.reconciliation = :reconciliation and d.state in ('open', 'failed')
       union all
       select coalesce(r.window_from, d.first_seen)
         from diff d left join run r on r.id = d.run_id
        where d.reconciliation = :reconciliation and d.state in ('open', 'failed')
          and coalesce(d.record_time, d.not_before) is null)
     select least(c.covered_to, (select min(at) from unfinished), (select min(at) from undecided),
                  (select min(at) from unrepaired)) as proven
       from coverage c where c.reconciliation = :reconciliation`,
    { reconciliation },
  );
  return rows[0]?.proven ?? null;
}
