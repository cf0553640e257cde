-- The store of trueup. Everything that must not be lost or doubled is a row here, under a constraint.
-- All times are the database's own clock. Runs in the schema that is first in search_path.

create table meta (
  only_row          boolean primary key default true check (only_row),
  store_id          uuid not null default gen_random_uuid(),
  digest_key        text not null default replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''),
  system_identifier text,
  oldest_app        integer not null default 1,
  active_revision   integer,
  replay_held       text,
  created_at        timestamptz not null default clock_timestamp()
);
insert into meta default values;

create table config_revision (
  revision     integer generated always as identity primary key,
  digest       text not null unique,
  document     jsonb not null,
  created_at   timestamptz not null default clock_timestamp(),
  created_by   text not null,
  activated_at timestamptz
);
alter table meta add foreign key (active_revision) references config_revision;

create table audit (
  id      bigint generated always as identity primary key,
  at      timestamptz not null default clock_timestamp(),
  actor   text not null,
  origin  text not null,
  action  text not null,
  subject text not null,
  reason  text,
  before  jsonb,
  after   jsonb
);
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger audit_append_only before update or delete or truncate on audit
  for each statement execute function refuse_change();

-- Schedules: one row per (reconciliation, local wall time, occurrence of that wall time), claimed by insert.
create table slot (
  reconciliation text not null,
  local_time     text not null,
  occurrence     smallint not null check (occurrence in (1, 2)),
  nominal        timestamptz not null,
  claimed_at     timestamptz not null default clock_timestamp(),
  outcome        text not null check (outcome in ('run', 'collapsed', 'skipped')),
  run_id         bigint,
  primary key (reconciliation, local_time, occurrence)
);
create index slot_latest on slot (reconciliation, nominal desc);
create index slot_run on slot (run_id) where run_id is not null;
create table schedule (
  reconciliation text primary key,
  started_at     timestamptz not null default clock_timestamp(),
  paused         text,
  paused_until   timestamptz
);

create table run (
  id             bigint generated always as identity primary key,
  reconciliation text not null,
  revision       integer references config_revision,
  trigger        text not null check (trigger in ('schedule', 'adhoc')),
  mode           text not null check (mode in ('check', 'compensate')),
  phase          text not null default 'reading'
    check (phase in ('reading', 'rechecking', 'concluding', 'held', 'done')),
  result         text check (result in ('complete', 'incomplete', 'failed', 'cancelled', 'discarded')),
  verdict        text check (verdict in ('match', 'differ', 'undecided')),
  reason         text,
  -- null until a scheduled run has asked its source for the time (rule 5.8)
  window_from    timestamptz,
  window_to      timestamptz check (window_to >= window_from),
  read_to        timestamptz,
  moves_coverage boolean not null,
  -- `overlapping: queue`: this run waits until that one is done
  waits_for      bigint references run on delete set null,
  tries          integer not null default 0,
  watermark      integer check (watermark > 0),
  counts         jsonb not null default '{}',
  timings        jsonb not null default '{}',
  plan           jsonb,
  guard          jsonb,
  due_at         timestamptz not null default clock_timestamp(),
  ring           integer not null default 0,
  ring_until     timestamptz,
  lease_owner    text,
  lease_until    timestamptz,
  lease_token    bigint not null default 0,
  created_at     timestamptz not null default clock_timestamp(),
  ended_at       timestamptz,
  check ((phase = 'done') = (result is not null)),
  check ((window_from is null) = (window_to is null)),
  check (verdict is distinct from 'match' or result is not distinct from 'complete')
);
create index run_due on run (due_at) where phase not in ('done', 'held');
create index run_recent on run (reconciliation, id desc);
create index run_waits on run (waits_for) where waits_for is not null;
alter table slot add foreign key (run_id) references run on delete set null;

create table coverage (
  reconciliation text primary key,
  covered_to     timestamptz not null,
  updated_at     timestamptz not null default clock_timestamp()
);
create function coverage_only_forward() returns trigger language plpgsql as $$
begin
  if new.covered_to < old.covered_to then
    raise exception 'coverage of % cannot move back', old.reconciliation using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger coverage_only_forward before update on coverage
  for each row execute function coverage_only_forward();

-- A record that looked different, waiting for its recheck.
create table suspect (
  id                bigint generated always as identity primary key,
  run_id            bigint not null references run on delete cascade,
  reconciliation    text not null,
  business_key      text not null,
  kind              text not null check (kind in ('missing', 'extra', 'mismatched', 'duplicate')),
  record_time       timestamptz,
  source_digest     text,
  downstream_digest text,
  looks             integer not null default 1,
  state             text not null default 'waiting' check (state in ('waiting', 'confirmed', 'healed', 'undecided')),
  reason            text,
  finding           jsonb,
  due_at            timestamptz not null,
  first_seen        timestamptz not null default clock_timestamp(),
  unique (run_id, business_key)
);
create index suspect_waiting on suspect (run_id, due_at) where state = 'waiting';
create index suspect_open on suspect (reconciliation, record_time) where state in ('waiting', 'undecided');

create table diff (
  id                bigint generated always as identity primary key,
  reconciliation    text not null,
  run_id            bigint references run on delete set null,
  business_key      text not null,
  kind              text not null check (kind in ('missing', 'extra', 'mismatched', 'duplicate')),
  fields            jsonb not null default '[]',
  source_record     jsonb,
  downstream_record jsonb,
  source_digest     text,
  downstream_digest text,
  record_time       timestamptz,
  trace_id          text not null,
  state             text not null default 'open'
    check (state in ('open', 'verified', 'healed', 'resolved', 'failed', 'dismissed')),
  times_seen        integer not null default 1,
  first_seen        timestamptz not null default clock_timestamp(),
  last_seen         timestamptz not null default clock_timestamp(),
  next_look         timestamptz not null,
  closed_at         timestamptz,
  closed_by         text,
  close_reason      text,
  dismissed_until   timestamptz,
  check ((state in ('open', 'failed')) = (closed_at is null))
);
create unique index diff_one_open on diff (reconciliation, business_key) where state in ('open', 'failed');
create index diff_look on diff (next_look) where state in ('open', 'failed');
create index diff_key on diff (reconciliation, business_key, id desc);
create index diff_state on diff (reconciliation, state, id);
create index diff_run on diff (run_id);

-- The ledger: one row per planned repair. Legal changes of state are the rows of compensation_transition,
-- the same table as src/compensate/state.ts (a test compares them).
create table compensation_transition (
  before text not null,
  after  text not null,
  primary key (before, after)
);

create table compensation (
  id                bigint generated always as identity primary key,
  diff_id           bigint not null references diff on delete cascade,
  run_id            bigint references run on delete set null,
  config_revision   integer references config_revision,
  reconciliation    text not null,
  repair            text not null,
  side              text not null check (side in ('downstream', 'source')),
  target            text not null,
  order_scope       text not null,
  business_key      text not null,
  operation         text not null,
  idempotency_key   text not null,
  revision          integer not null default 0 check (revision >= 0),
  fingerprint       text not null,
  payload           jsonb not null,
  state             text not null default 'planned' check (state in ('planned', 'held', 'ready', 'queued', 'sending',
    'retrying', 'deferred', 'unknown', 'applied', 'verified', 'healed', 'cancelled', 'superseded', 'escalated')),
  escalation        text,
  escalation_detail text,
  last_unknown      boolean not null default false,
  attempts          integer not null default 0,
  attempt_number    integer not null default 0,
  ring              integer not null default 0,
  due_at            timestamptz not null default clock_timestamp(),
  ring_until        timestamptz,
  lease_until       timestamptz,
  lease_owner       text,
  first_sent_at     timestamptz,
  last_sent_at      timestamptz,
  -- the oldest send whose outcome no look has settled: the target's memory of the key counts from here
  unknown_since     timestamptz,
  settle_until      timestamptz,
  target_down_since timestamptz,
  trace_id          text not null,
  traceparent       text,
  created_at        timestamptz not null default clock_timestamp(),
  updated_at        timestamptz not null default clock_timestamp(),
  ended_at          timestamptz,
  check ((state = 'escalated') = (escalation is not null)),
  check ((state in ('verified', 'healed', 'cancelled', 'superseded', 'escalated')) = (ended_at is not null))
);
-- Rules 6.1, 6.2: one effect per key and revision. A revision is kept over discards and replays of what did not take,
-- so ended rows without an effect may share it with one that is open or took.
create unique index compensation_key on compensation (idempotency_key, revision)
  where state not in ('healed', 'cancelled', 'superseded', 'escalated');
create index compensation_history on compensation (idempotency_key, revision);
-- Rule 6.6: one in the pipe per (target, order scope, business key). Planned and held ones wait behind it.
create unique index compensation_one_in_pipe on compensation (target, order_scope, business_key)
  where state in ('ready', 'queued', 'sending', 'retrying', 'deferred', 'unknown', 'applied')
     or (state = 'escalated' and last_unknown);
create index compensation_due on compensation (target, state, due_at, id)
  where state in ('ready', 'retrying', 'deferred');
create index compensation_fresh on compensation (target, id) where state in ('ready', 'deferred');
create index compensation_retry on compensation (target, id) where state = 'retrying';
create index compensation_live on compensation (target, state) where state in ('queued', 'sending');
create index compensation_settle on compensation (reconciliation, due_at) where state in ('applied', 'unknown');
create index compensation_planned on compensation (id) where state = 'planned';
create index compensation_leased on compensation (lease_until) where state = 'sending';
create index compensation_rung on compensation (ring_until) where state = 'queued';
create index compensation_run on compensation (run_id);
create index compensation_diff on compensation (diff_id);
create index compensation_scope on compensation (target, order_scope, business_key, id);

create function compensation_legal_change() returns trigger language plpgsql as $$
begin
  if new.state <> old.state
     and not exists (select from compensation_transition t where t.before = old.state and t.after = new.state) then
    raise exception 'compensation % cannot go from % to %', old.id, old.state, new.state
      using errcode = 'check_violation';
  end if;
  new.updated_at := clock_timestamp();
  return new;
end $$;
create trigger compensation_legal_change before update on compensation
  for each row execute function compensation_legal_change();

create table attempt (
  compensation_id bigint not null references compensation on delete cascade,
  number          integer not null,
  target          text not null,
  worker          text not null,
  counted         boolean not null default true,
  granted_at      timestamptz not null default clock_timestamp(),
  slot_at         timestamptz not null,
  deadline        timestamptz not null,
  started_at      timestamptz,
  ended_at        timestamptz,
  outcome         text check (outcome in ('accepted', 'pending', 'retryable', 'target-down', 'fatal', 'unknown',
    'conflict', 'not-sent', 'lease-lost')),
  error_code      text,
  request         jsonb,
  answer          jsonb,
  error           jsonb,
  system          jsonb,
  duration_ms     double precision,
  primary key (compensation_id, number)
);
create index attempt_sent on attempt (target, slot_at);

-- What happened to a diff, in order: looks, attempts, people. For `trueup diff ID` and the page.
create table diff_event (
  id              bigint generated always as identity primary key,
  diff_id         bigint not null references diff on delete cascade,
  compensation_id bigint references compensation on delete cascade,
  at              timestamptz not null default clock_timestamp(),
  event           text not null,
  detail          jsonb not null default '{}'
);
create index diff_event_diff on diff_event (diff_id, id);
create index diff_event_compensation on diff_event (compensation_id) where compensation_id is not null;

-- One row per gate and purpose; the lock on it is the gate (rule 6.14).
create table gate (
  gate              text not null,
  purpose           text not null check (purpose in ('send', 'read')),
  slots             jsonb,
  system_identifier text,
  ceiling           integer check (ceiling > 0),
  override          integer check (override >= 0),
  override_until    timestamptz,
  held              text,
  held_by           text,
  rate              jsonb not null default '{}',
  updated_at        timestamptz not null default clock_timestamp(),
  primary key (gate, purpose)
);

create table alert (
  id             bigint generated always as identity primary key,
  reconciliation text not null,
  kind           text not null,
  severity       text not null check (severity in ('warning', 'action')),
  state          text not null default 'open' check (state in ('open', 'recovered')),
  summary        jsonb not null,
  opened_at      timestamptz not null default clock_timestamp(),
  notified_at    timestamptz,
  notified_count bigint not null default 0,
  recovered_at   timestamptz
);
create unique index alert_one_open on alert (reconciliation, kind) where state = 'open';

create table alert_message (
  id           bigint generated always as identity primary key,
  alert_id     bigint not null references alert on delete cascade,
  channel      text not null,
  message      jsonb not null,
  state        text not null default 'waiting' check (state in ('waiting', 'sent', 'failed')),
  attempts     integer not null default 0,
  due_at       timestamptz not null default clock_timestamp(),
  lease_until  timestamptz,
  error        text,
  created_at   timestamptz not null default clock_timestamp(),
  sent_at      timestamptz
);
create index alert_message_due on alert_message (due_at) where state = 'waiting';

create table worker (
  id         text primary key,
  started_at timestamptz not null default clock_timestamp(),
  seen_at    timestamptz not null default clock_timestamp(),
  version    text not null,
  revision   integer
);

insert into compensation_transition (before, after) values
  ('planned', 'ready'),
  ('planned', 'held'),
  ('planned', 'cancelled'),
  ('planned', 'healed'),
  ('planned', 'superseded'),
  ('planned', 'escalated'),
  ('held', 'planned'),
  ('held', 'cancelled'),
  ('held', 'healed'),
  ('held', 'superseded'),
  ('ready', 'queued'),
  ('ready', 'held'),
  ('ready', 'cancelled'),
  ('ready', 'healed'),
  ('ready', 'superseded'),
  ('queued', 'ready'),
  ('queued', 'sending'),
  ('queued', 'held'),
  ('queued', 'cancelled'),
  ('queued', 'deferred'),
  ('queued', 'healed'),
  ('queued', 'superseded'),
  ('queued', 'escalated'),
  ('sending', 'ready'),
  ('sending', 'applied'),
  ('sending', 'retrying'),
  ('sending', 'deferred'),
  ('sending', 'unknown'),
  ('sending', 'escalated'),
  ('retrying', 'queued'),
  ('retrying', 'held'),
  ('retrying', 'cancelled'),
  ('retrying', 'healed'),
  ('retrying', 'superseded'),
  ('deferred', 'queued'),
  ('deferred', 'held'),
  ('deferred', 'cancelled'),
  ('deferred', 'healed'),
  ('deferred', 'superseded'),
  ('deferred', 'escalated'),
  ('unknown', 'verified'),
  ('unknown', 'ready'),
  ('unknown', 'escalated'),
  ('applied', 'verified'),
  ('applied', 'superseded'),
  ('applied', 'escalated');
