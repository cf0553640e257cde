import type { Instant } from '../reconcile/instant.ts';
import { displayKey, keyFromText } from '../reconcile/record.ts';
import { AT_A_PERSON, CAPPED, FAILING, HELD, INCOMPLETE, NOT_ON_HOLD, STALLED } from './alert-conditions.ts';
import type { AlertKind, Condition, CountedCondition } from './alert-state.ts';
import { type Db, only } from './database.ts';
import { guardPatterns } from './run-holds.ts';

/** The most frequent error is that of the oldest this many, however many there are. */
const LOOKED_AT = 500;
const SAMPLES = 3;

interface Found {
  readonly since: Instant | null;
  readonly key: string;
  readonly text: string;
  readonly code: string | null;
  readonly id: string | null;
}

/** Adds what a message says about a condition: since when, three samples, the most frequent error. */
export async function describeCondition(db: Db, condition: CountedCondition): Promise<Condition> {
  const { rows } = await db.raw<{ rows: Found[] }>(
    `select since, key, left(text, 500) as text, left(code, 200) as code, id::text as id from (${FOUND[condition.kind]}) found`,
    { subject: condition.reconciliation, limit: LOOKED_AT },
  );
  return {
    ...condition,
    facts: {
      oldest: rows[0]?.since ?? null,
      samples: rows
        .slice(0, SAMPLES)
        .map(({ key, text, id }) => ({ key: shownKey(condition, key), text, id })),
      dominantError: mostFrequent(rows),
      detail: await detailOf(db, condition),
    },
  };
}

function shownKey({ kind }: CountedCondition, key: string): string {
  return kind === 'diffs' || kind === 'escalated' ? displayKey(keyFromText(key)) : key;
}

function mostFrequent(rows: readonly Found[]): Condition['facts']['dominantError'] {
  const counts = new Map<string, number>();
  for (const { code } of rows) if (code !== null) counts.set(code, (counts.get(code) ?? 0) + 1);
  const [first] = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return first === undefined ? null : { code: first[0], count: first[1], of: rows.length };
}

async function detailOf(db: Db, condition: CountedCondition): Promise<string | null> {
  if (condition.kind !== 'diffs' && condition.kind !== 'escalated') return null;
  const pattern = (await guardPatterns(db, [condition.reconciliation])).get(condition.reconciliation);
  const told = [
    ...(condition.kind === 'diffs' ? [`being repaired: ${await repairing(db, condition)}`] : []),
    ...(pattern === undefined ? [] : [`the guard saw: ${pattern}`]),
  ];
  return told.length === 0 ? null : told.join('; ');
}

async function repairing(db: Db, { reconciliation, count }: CountedCondition): Promise<number> {
  const { rows } = await db.raw<{ rows: { open: number }[] }>(
    'select count(*)::int as open from compensation where reconciliation = ? and ended_at is null',
    [reconciliation],
  );
  return Math.min(only(rows).open, count);
}

/**
 * Open diffs with their latest compensation and its last failed attempt. The error text is the message with its
 * cause; where the target answered without an error, its answer. The limit is inside, so that no more is looked up.
 */
const openDiffs = (which: string) => `
  select d.first_seen as since, d.business_key as key, d.id, coalesce(a.error_code, c.escalation) as code,
         coalesce(nullif(concat_ws(': ', a.error ->> 'message', a.error #>> '{cause,message}'), ''),
                  a.error_code || ' ' || coalesce(a.answer ->> 'body', a.answer::text),
                  c.escalation_detail, a.error_code, c.escalation, d.kind) as text
    from (select d.id, d.first_seen, d.business_key, d.kind from diff d
           where d.reconciliation = :subject and d.state = 'open' and ${NOT_ON_HOLD} and ${which}
           order by d.first_seen, d.id limit :limit) d
    left join lateral (select id, escalation, escalation_detail from compensation
                        where diff_id = d.id order by id desc limit 1) c on true
    left join lateral (select error_code, error, answer from attempt
                        where compensation_id = c.id and outcome not in ('accepted', 'pending', 'not-sent')
                        order by number desc limit 1) a on true
   order by d.first_seen, d.id`;

const FOUND: Readonly<Record<AlertKind, string>> = {
  diffs: openDiffs(`not ${AT_A_PERSON}`),
  escalated: openDiffs(AT_A_PERSON),
  'run-held': `
    select created_at as since, 'run ' || id as key, coalesce(reason, 'on hold') as text, null::text as code, id
      from run where phase = 'held' and reconciliation = :subject order by id limit :limit`,
  'run-incomplete': `
    select ended_at as since, 'run ' || id as key, coalesce(reason, result) as text, null::text as code, id
      from (${INCOMPLETE}) runs where reconciliation = :subject order by ended_at, id limit :limit`,
  'replay-stalled': `
    select since, target as key, 'target ' || target as code, id,
           coalesce(escalation_detail,
                    'down since ' || to_char(since at time zone 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC') as text
      from (${STALLED}) waiting where reconciliation = :subject order by since, id limit :limit`,
  'replay-held': `
    select since, subject as key, text, null::text as code, null::text as id
      from (${HELD}) holds where subject = :subject limit :limit`,
  'holdback-capped': `
    select created_at as since, 'run ' || id as key, null::text as code, id,
           'a transaction at the source stays open; held back by ' || round(capped_holdback_ms / 1000.0)
             || ' s, what it writes later is left to the lookback' as text
      from (${CAPPED}) runs where reconciliation = :subject limit :limit`,
  'channel-failing': `
    select created_at as since, title as key, coalesce(error, 'no answer was recorded') as text, error as code, id
      from (${FAILING}) messages where channel = :subject order by created_at, id limit :limit`,
};
