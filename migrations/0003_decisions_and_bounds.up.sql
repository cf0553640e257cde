-- A record that has no time of its own is not older than the window that showed it first, whichever run looks at it
-- later: the moment up to which nothing is open stands before that.
alter table suspect add column not_before timestamptz;
alter table diff add column not_before timestamptz;

-- A decision ends when a later look shows the records otherwise, and it does not come back with the old values.
alter table diff add column lapsed_at timestamptz;
update diff set lapsed_at = clock_timestamp()
 where state in ('resolved', 'dismissed')
   and exists (select from diff newer where newer.reconciliation = diff.reconciliation
                  and newer.business_key = diff.business_key and newer.id > diff.id);
create index diff_standing on diff (reconciliation, record_time)
  where state in ('resolved', 'dismissed') and lapsed_at is null;

-- Findings are read page by page in key order when a run concludes.
create index suspect_confirmed on suspect (run_id, business_key collate "C") where state = 'confirmed';
