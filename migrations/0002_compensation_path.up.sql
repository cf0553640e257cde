-- Bounds and facts of the compensation path.

alter table compensation
  -- the first of the looks in a row that could not decide; null when the last one did
  add column undecided_since timestamptz,
  -- since when it waits for its gate: when its turn came, or when a repeat was allowed
  add column waiting_since   timestamptz,
  -- accepted, never visible, and followed by one more round (rule 6.11)
  add column not_taken       boolean not null default false;
update compensation set not_taken = true
 where state = 'superseded' and escalation_detail = 'accepted, not taken; one more round';

-- Rule 6.13: whether a row is a retry is told by its counted attempts, wherever it came from.
create index compensation_first on compensation (target, due_at, id)
  where state in ('ready', 'retrying', 'deferred') and attempts = 0;
create index compensation_again on compensation (target, due_at, id)
  where state in ('ready', 'retrying', 'deferred') and attempts > 0;
create index compensation_waiting on compensation (target, coalesce(waiting_since, created_at), id)
  where state in ('ready', 'retrying', 'deferred');

-- Rule 6.12: the clock of giving up belongs to the gate, and what a person held does not count.
alter table gate
  add column outage      jsonb,
  add column held_at     timestamptz,
  add column released_at timestamptz;

insert into compensation_transition (before, after) values
  ('ready', 'escalated'),
  ('retrying', 'escalated');
