import { type CountedCondition, SEVERITY } from './alert-state.ts';
import { type Db, inTransaction } from './database.ts';

/**
 * What is wrong now, counted. Asked every few seconds, so the counts come from indexes alone (migration 0005); what a
 * message says besides is read only when there is something to tell (`alert-facts.ts`).
 */
export async function countConditions(db: Db): Promise<CountedCondition[]> {
  return inTransaction(db, async (trx) => {
    // A hundred thousand new diffs that the planner has not counted yet look like a handful to it, and it would
    // compare each with each.
    await trx.raw('set local enable_nestloop = off');
    const { rows } = await trx.raw<{ rows: Omit<CountedCondition, 'severity'>[] }>(COUNTED);
    await trx.raw('set local enable_nestloop to default');
    return rows.map((row) => ({ ...row, severity: SEVERITY[row.kind] }));
  });
}

/** A target that is down for less is left to the quick retries and the breaker. */
const STALLED_AFTER_MS = 300_000;
/** Failed tries of one message after which its channel counts as failing: about half a minute with the back-off. */
const FAILED_TRIES = 5;

/** Diffs of a run on hold are told by the hold. */
export const NOT_ON_HOLD = `not exists (select from run r where r.id = d.run_id and r.phase = 'held')`;

/** Only the latest compensation of a diff says whether a person is needed. */
const LATEST_ESCALATED = `
  select c.diff_id from compensation c
   where c.state = 'escalated'
     and not exists (select from compensation newer where newer.diff_id = c.diff_id and newer.id > c.id)`;
export const AT_A_PERSON = `exists (select from (${LATEST_ESCALATED}) e where e.diff_id = d.id)`;

/** One pass over the open diffs. */
const OPENED = `
  select reconciliation, count(*) as count, count(e.diff_id) as escalated
    from diff d left join (${LATEST_ESCALATED}) e on e.diff_id = d.id
   where d.state = 'open' and ${NOT_ON_HOLD} group by 1`;

/** Every process works by the active configuration; what it no longer has is nobody's trouble any more. */
const configured = (reconciliation: string) => `not exists (
  select from meta m join config_revision active on active.revision = m.active_revision
   where not jsonb_exists(active.document -> 'reconciliations', ${reconciliation}))`;

/** Since the last complete run, by the time they ended: a long ad-hoc run may end after a younger one. */
export const INCOMPLETE = `
  select id, reconciliation, ended_at, reason, result from run r
   where result in ('incomplete', 'failed') and ${configured('r.reconciliation')}
     and ended_at >= coalesce((select max(ended_at) from run good
                                where good.reconciliation = r.reconciliation and good.result = 'complete'), ended_at)`;

/** The latest scheduled run of each reconciliation, where open transactions held it back for too long (rule 5.8). */
export const CAPPED = `
  select latest.* from coverage c cross join lateral (
    select id, reconciliation, created_at, capped_holdback_ms from run r
     where r.reconciliation = c.reconciliation and trigger = 'schedule' and window_to is not null
     order by id desc limit 1) latest
   where capped_holdback_ms is not null and ${configured('c.reconciliation')}`;

/** Where sends are stopped as a whole: the store after a restore (rule 7.3), or a gate by a person. */
export const HELD = `
  select 'store' as subject, replay_held as text, null::timestamptz as since from meta where replay_held is not null
  union all
  select gate, held, coalesce(held_at, updated_at) from gate where purpose = 'send' and held is not null`;

const WAITING = `state in ('ready', 'queued', 'retrying', 'deferred')`;

/**
 * Targets that are down for long, by the first and the latest failure after the last good answer (rule 6.12); what a
 * person held does not count. Which gate a target has is said by the active configuration; else it has one of its own.
 */
const DOWN = `
  select coalesce(t.key, g.gate) as target, to_timestamp((g.outage ->> 'sinceMs')::float8 / 1000) as since
    from gate g
    left join meta m on true
    left join config_revision active on active.revision = m.active_revision
    left join lateral jsonb_each(active.document -> 'targets') t on t.value ->> 'upstream' = g.gate or t.key = g.gate
   where g.purpose = 'send' and (g.outage ->> 'seenMs')::float8 - (g.outage ->> 'sinceMs')::float8
           - (g.outage ->> 'heldMs')::float8 >= ${STALLED_AFTER_MS}`;

/** All repairs that wait for a target that is down for long. */
export const STALLED = `
  select c.reconciliation, c.id, c.target, down.since, c.escalation_detail
    from (${DOWN}) down join compensation c on c.target = down.target
   where c.ended_at is null and c.${WAITING}`;

/**
 * Messages that a channel did not take: tried several times and still tried, or refused for good with nothing
 * delivered since. Both end by themselves for a channel that is no longer configured. `lease_until` of a message
 * that is not leased is the end of its last try.
 */
export const FAILING = `
  select m.id, m.channel, m.created_at, m.message ->> 'title' as title, m.error from alert_message m
   where (m.state = 'waiting' and m.attempts >= ${FAILED_TRIES} and m.error is not null
          and m.due_at > clock_timestamp() - interval '1 hour')
      or (m.state = 'failed' and m.lease_until > clock_timestamp() - interval '1 day'
          and not exists (select from alert_message s where s.channel = m.channel and s.sent_at > m.lease_until))`;

const COUNTED = `
  with opened as (${OPENED}),
  found as (
    select reconciliation, 'diffs' as kind, count - escalated as count from opened
    union all select reconciliation, 'escalated', escalated from opened
    union all select reconciliation, 'run-held', count(*) from run where phase = 'held' group by 1
    union all select reconciliation, 'run-incomplete', count(*) from (${INCOMPLETE}) runs group by 1
    union all select reconciliation, 'replay-stalled', count(*) from (${STALLED}) waiting group by 1
    union all select subject, 'replay-held', count(*) from (${HELD}) holds group by 1
    union all select reconciliation, 'holdback-capped', count(*) from (${CAPPED}) runs group by 1
    union all select channel, 'channel-failing', count(*) from (${FAILING}) messages group by 1)
  select reconciliation, kind, count::int as count from found where count > 0 order by kind, reconciliation`;
