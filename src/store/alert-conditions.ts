import type { Instant } from '../reconcile/instant.ts';
import { displayKey, keyFromText } from '../reconcile/record.ts';
import { type AlertKind, type AlertSample, type Condition, SEVERITY } from './alert-state.ts';
import type { Db } from './database.ts';
import { guardPatterns } from './run-holds.ts';

/** A target that is down for less is left to the quick retries and the breaker. */
const STALLED_AFTER = '5 minutes';
/** Failed tries of one message after which its channel counts as failing: about half a minute with the back-off. */
const FAILED_TRIES = 5;

/** Groups `found(reconciliation, id, since, key, text, code, repairing)` into one row per reconciliation. */
const GROUPED = `
  select reconciliation, count(*)::int as count, min(since) as oldest,
         coalesce(jsonb_agg(jsonb_build_object('key', key, 'text', left(text, 500), 'id', id::text) order by place)
                    filter (where place <= 3), '[]') as samples,
         left(mode() within group (order by code), 200) as code,
         coalesce(max(same) filter (where code is not null), 0)::int as code_count,
         (count(*) filter (where repairing))::int as repairing
    from (select found.*, row_number() over (partition by reconciliation order by since, id) as place,
                 count(*) over (partition by reconciliation, code) as same
            from found) numbered
   group by reconciliation order by reconciliation`;

interface ConditionRow {
  readonly reconciliation: string;
  readonly count: number;
  readonly oldest: Instant | null;
  readonly samples: readonly AlertSample[];
  readonly code: string | null;
  readonly code_count: number;
  readonly repairing: number;
}

/** Everything that is wrong now, grouped per (reconciliation, kind). Reads only. */
export async function alertConditions(db: Db): Promise<Condition[]> {
  return [
    ...(await diffConditions(db, 'diffs')),
    ...(await diffConditions(db, 'escalated')),
    ...(await conditions(db, 'run-held', HELD)),
    ...(await conditions(db, 'run-incomplete', INCOMPLETE)),
    ...(await conditions(db, 'replay-stalled', STALLED)),
    ...(await conditions(db, 'channel-failing', FAILING)),
  ];
}

async function conditions(db: Db, kind: AlertKind, found: string): Promise<Condition[]> {
  const { rows } = await db.raw<{ rows: ConditionRow[] }>(`with found as (${found}) ${GROUPED}`);
  return rows.map((row) => ({
    reconciliation: row.reconciliation,
    kind,
    severity: SEVERITY[kind],
    count: row.count,
    facts: {
      oldest: row.oldest,
      samples: row.samples,
      dominantError: row.code === null ? null : { code: row.code, count: row.code_count },
      detail: kind === 'diffs' ? `being repaired: ${row.repairing}` : null,
    },
  }));
}

async function diffConditions(db: Db, kind: 'diffs' | 'escalated'): Promise<Condition[]> {
  const found = await conditions(db, kind, kind === 'escalated' ? ESCALATED : UNESCALATED);
  const patterns = await guardPatterns(
    db,
    found.map(({ reconciliation }) => reconciliation),
  );
  const seen = (reconciliation: string) => {
    const pattern = patterns.get(reconciliation);
    return pattern === undefined ? [] : [`the guard saw: ${pattern}`];
  };
  return found.map((condition) => ({
    ...condition,
    facts: {
      ...condition.facts,
      detail: [condition.facts.detail, ...seen(condition.reconciliation)].filter(Boolean).join('; ') || null,
      samples: condition.facts.samples.map((sample) => ({
        ...sample,
        key: displayKey(keyFromText(sample.key)),
      })),
    },
  }));
}

/**
 * Open diffs with their latest compensation and its last failed attempt. Diffs of a run on hold are told by the hold.
 * The error text is the message with its cause; where the target answered without an error, its answer.
 */
const openDiffs = (which: string) => `
  select d.reconciliation, d.id, d.first_seen as since, d.business_key as key,
         coalesce(a.error_code, c.escalation) as code,
         coalesce(nullif(concat_ws(': ', a.error ->> 'message', a.error #>> '{cause,message}'), ''),
                  a.error_code || ' ' || coalesce(a.answer ->> 'body', a.answer::text),
                  c.escalation_detail, a.error_code, c.escalation, d.kind) as text,
         c.ended_at is null and c.id is not null as repairing
    from diff d
    left join lateral (select id, state, escalation, escalation_detail, ended_at from compensation
                        where diff_id = d.id order by id desc limit 1) c on true
    left join lateral (select error_code, error, answer from attempt
                        where compensation_id = c.id and outcome not in ('accepted', 'pending', 'not-sent')
                        order by number desc limit 1) a on true
   where d.state = 'open' and ${which}
     and not exists (select from run r where r.id = d.run_id and r.phase = 'held')`;

const ESCALATED = openDiffs(`c.state = 'escalated'`);
const UNESCALATED = openDiffs(`c.state is distinct from 'escalated'`);

const HELD = `
  select reconciliation, id, created_at as since, 'run ' || id as key, coalesce(reason, 'on hold') as text,
         null::text as code, false as repairing
    from run where phase = 'held'`;

/** By the time they ended: a long ad-hoc run may end after a younger one. */
const INCOMPLETE = `
  select reconciliation, id, ended_at as since, 'run ' || id as key, coalesce(reason, result) as text,
         null::text as code, false as repairing
    from run r
   where result in ('incomplete', 'failed')
     and not exists (select from run later where later.reconciliation = r.reconciliation
                        and later.result = 'complete' and later.ended_at > r.ended_at)`;

/** All repairs that wait for a target of which one send is known to have found it down for long. */
const STALLED = `
  select c.reconciliation, c.id, coalesce(c.target_down_since, c.created_at) as since, c.target as key,
         coalesce(c.escalation_detail, 'down since ' || to_char(down.since at time zone 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC')
           as text,
         'target ' || c.target as code, true as repairing
    from compensation c
    join (select target, min(target_down_since) as since from compensation
           where state in ('ready', 'queued', 'retrying', 'deferred')
             and target_down_since < clock_timestamp() - interval '${STALLED_AFTER}'
           group by target) down on down.target = c.target
   where c.state in ('ready', 'queued', 'retrying', 'deferred')`;

/**
 * Messages that a channel did not take: tried several times and still tried, or refused for good with nothing
 * delivered since. Both end by themselves for a channel that is no longer configured. `lease_until` of a message
 * that is not leased is the end of its last try.
 */
const FAILING = `
  select m.channel as reconciliation, m.id, m.created_at as since, m.message ->> 'title' as key,
         coalesce(m.error, 'no answer was recorded') as text, m.error as code, false as repairing
    from alert_message m
   where (m.state = 'waiting' and m.attempts >= ${FAILED_TRIES} and m.error is not null
          and m.due_at > clock_timestamp() - interval '1 hour')
      or (m.state = 'failed' and m.lease_until > clock_timestamp() - interval '1 day'
          and not exists (select from alert_message s where s.channel = m.channel and s.sent_at > m.lease_until))`;
