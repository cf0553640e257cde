-- Stored plans, and a gate of its own for a run with a watermark of its own.

alter table run drop constraint run_mode_check;
alter table run add constraint run_mode_check check (mode in ('check', 'plan', 'compensate'));

-- What a run in mode `plan` found and would repair. It has no ledger rows: executing it inserts them.
create table plan (
  id             bigint generated always as identity primary key,
  run_id         bigint not null unique references run on delete cascade,
  reconciliation text not null,
  summary        jsonb not null,
  created_at     timestamptz not null default clock_timestamp(),
  expires_at     timestamptz not null,
  executed_at    timestamptz,
  executed_by    text,
  outcome        jsonb,
  check ((executed_at is null) = (outcome is null))
);
-- The digests are those of the plan: a diff that has others by now is not what was planned.
create table plan_diff (
  plan_id           bigint not null references plan on delete cascade,
  diff_id           bigint not null references diff on delete cascade,
  source_digest     text,
  downstream_digest text,
  primary key (plan_id, diff_id)
);
create index plan_diff_diff on plan_diff (diff_id);

-- A run's gate is asked in addition to its target's, in the same transaction.
alter table gate drop constraint gate_purpose_check;
alter table gate add constraint gate_purpose_check check (purpose in ('send', 'read', 'run'));
alter table gate add column run_id bigint references run on delete cascade;
create index gate_run on gate (run_id) where run_id is not null;

-- A one-shot process is a worker that goes away by itself: nobody may hand work over to it.
alter table worker add column one_shot boolean not null default false;
