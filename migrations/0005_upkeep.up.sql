-- Work that one process at a time does for all of them, no more often than it needs to: a row per kind of work.
create table upkeep (
  name    text primary key,
  next_at timestamptz not null
);

-- Rule 5.8: how far a run was held back behind open transactions when that was not far enough; null when it was.
alter table run add column capped_holdback_ms bigint;

-- What is counted every few seconds or at each scrape is counted in these indexes, without a look at the tables.
create index diff_open on diff (reconciliation, first_seen, id) include (kind, state, run_id)
  where state in ('open', 'failed');
create index diff_unproven on diff (reconciliation, coalesce(record_time, not_before))
  where state in ('open', 'failed');
create index compensation_open on compensation (reconciliation, target, state) where ended_at is null;
create index compensation_escalated on compensation (diff_id, id) where state = 'escalated';
create index compensation_of_diff on compensation (diff_id, id);
-- The one above does all that this one did.
drop index compensation_diff;
create index run_held on run (reconciliation) where phase = 'held';
create index run_complete on run (reconciliation, ended_at) where result = 'complete';
create index run_incomplete on run (reconciliation, ended_at) where result in ('incomplete', 'failed');
create index alert_message_waiting on alert_message (channel, id) where state = 'waiting';
create index alert_message_tried on alert_message (channel, coalesce(sent_at, lease_until));

-- What retention looks for.
create index diff_closed on diff (closed_at) where state not in ('open', 'failed');
create index run_done on run (ended_at) where phase = 'done';
create index slot_nominal on slot (nominal);
create index alert_recovered on alert (recovered_at) where state = 'recovered';
create index alert_message_alert on alert_message (alert_id);
