import type { Window } from '../reconcile/record.ts';
import type { Db } from './database.ts';
import type { RunMode } from './runs.ts';

interface AdoptingRun {
  readonly id: string;
  readonly reconciliation: string;
  readonly mode: RunMode;
}

/** Takes over as suspects what no reading finds, and nobody else will look at again. */
export async function adoptSuspects(db: Db, run: AdoptingRun, window: Window): Promise<void> {
  await adoptLeftOver(db, run);
  await adoptDecisions(db, run, window);
  if (run.mode !== 'check') await adoptUnplanned(db, run);
}

/**
 * Suspects of ended runs that were never decided. Keys that cannot be read have no record to look up and stay where
 * they are.
 */
async function adoptLeftOver(db: Db, run: AdoptingRun): Promise<void> {
  await db.raw(
    `with left_over as (
       select s.* from suspect s join run r on r.id = s.run_id
        where s.reconciliation = :reconciliation and s.run_id <> :run and r.phase = 'done' and s.business_key <> '[]'
          and (s.state in ('waiting', 'undecided') or (s.state = 'confirmed' and r.result not in ('complete', 'discarded')))),
     adopted as (
       insert into suspect (run_id, reconciliation, business_key, kind, record_time, not_before, source_digest,
                            downstream_digest, looks, due_at, first_seen)
       select distinct on (business_key) :run, reconciliation, business_key, kind, record_time, not_before,
              source_digest, downstream_digest, 1, clock_timestamp(), first_seen
         from left_over order by business_key, id desc
       on conflict (run_id, business_key) do nothing)
     delete from suspect using left_over where suspect.id = left_over.id`,
    { run: run.id, reconciliation: run.reconciliation },
  );
}

/**
 * Differences that a person decided on, where the decision may have ended (rule 6.5): its time is over, or this run
 * read the record's time and saw no difference. What was known is from long ago, so a difference needs two looks.
 */
async function adoptDecisions(db: Db, run: AdoptingRun, window: Window): Promise<void> {
  await db.raw(
    `insert into suspect (run_id, reconciliation, business_key, kind, record_time, not_before, source_digest,
                          downstream_digest, looks, due_at)
     select distinct on (d.business_key) :run, d.reconciliation, d.business_key, d.kind, d.record_time, d.not_before,
            d.source_digest, d.downstream_digest, 0, clock_timestamp()
       from diff d
      where d.reconciliation = :reconciliation and d.state in ('resolved', 'dismissed') and d.lapsed_at is null
        and (d.dismissed_until <= clock_timestamp() or (d.record_time >= :from and d.record_time < :to))
      order by d.business_key, d.id desc
     on conflict (run_id, business_key) do nothing`,
    { run: run.id, reconciliation: run.reconciliation, from: window.from, to: window.to },
  );
}

/** Open diffs that no compensation was ever planned for (rule 5.11: each run, whatever the window). */
async function adoptUnplanned(db: Db, run: AdoptingRun): Promise<void> {
  await db.raw(
    `insert into suspect (run_id, reconciliation, business_key, kind, record_time, not_before, source_digest,
                          downstream_digest, looks, due_at, first_seen)
     select :run, d.reconciliation, d.business_key, d.kind, d.record_time, d.not_before, d.source_digest,
            d.downstream_digest, 1, clock_timestamp(), d.first_seen
       from diff d
      where d.reconciliation = :reconciliation and d.state = 'open'
        and not exists (select from compensation c where c.diff_id = d.id)
     on conflict (run_id, business_key) do nothing`,
    { run: run.id, reconciliation: run.reconciliation },
  );
}
