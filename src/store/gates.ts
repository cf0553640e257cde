import { givenUpSince, type Outage, outageAfterHold } from '../compensate/gate/outage.ts';
import { effectiveRate } from '../compensate/gate/rate.ts';
import { type GateTiming, MINUTE, spacing } from '../compensate/gate/watermark.ts';
import type { Target } from '../config/schema.ts';
import { type Db, inTransaction, only } from './database.ts';
import { type GateRow, lesser, lockGate, rateOf } from './gate-row.ts';
import { jsonColumn } from './json-column.ts';

/** What people see of a gate, and what they change. */

export interface GateStatus {
  readonly ceiling: number | null;
  readonly override: number | null;
  readonly overrideUntil: string | null;
  /** Calls that may start in 60 s now; null is unlimited, 0 is a breaker that is open. */
  readonly limit: number | null;
  readonly why: string;
  readonly breaker: string;
  readonly held: string | null;
  /** Milliseconds until the next slot can be granted at this rate; 0 or less is now. */
  readonly nextSlotInMs: number;
}

export async function gateStatus(
  db: Db,
  gate: string,
  target: Pick<Target, 'watermark'>,
  timing: GateTiming = MINUTE,
): Promise<GateStatus> {
  const { rows } = await db.raw<{
    rows: (GateRow & { override_until: string | null; now: number; replay_held: string | null })[];
  }>(
    `select g.slots, coalesce(g.rate, '{}'::jsonb) as rate, g.override, g.ceiling, g.held, g.override_until, m.replay_held,
            coalesce(g.override_until > clock_timestamp(), g.override is not null) as override_live,
            (extract(epoch from clock_timestamp()) * 1000)::float8 as now
       from meta m left join gate g on g.gate = ? and g.purpose = 'send'`,
    [gate],
  );
  const row = only(rows);
  const rate = rateOf(row);
  const override = row.override_live ? row.override : null;
  const ceiling = lesser(target.watermark, row.ceiling);
  const effective = effectiveRate(rate, ceiling, override, row.now);
  return {
    ceiling,
    override,
    overrideUntil: row.override_live ? row.override_until : null,
    limit: effective.limit,
    why: effective.reason,
    breaker: rate.breaker.kind,
    held: row.held ?? row.replay_held,
    nextSlotInMs: row.slots === null ? 0 : row.slots.lastSlotMs + spacing(effective.limit, timing) - row.now,
  };
}

async function updateGate(db: Db, gate: string, values: Record<string, unknown>): Promise<void> {
  const all = { ...values, updated_at: db.raw('clock_timestamp()') };
  await db('gate')
    .insert({ gate, purpose: 'send', ...all })
    .onConflict(['gate', 'purpose'])
    .merge(all);
}

/** Stores the ceilings of the configuration that becomes active; gates it does not name have none any more. */
export async function setCeilings(db: Db, ceilings: ReadonlyMap<string, number | null>): Promise<void> {
  await db('gate').where({ purpose: 'send' }).update({ ceiling: null });
  for (const [gate, ceiling] of ceilings) await updateGate(db, gate, { ceiling });
}

/** Stops all sends of a gate, until it is released. A second hold changes the reason, not when it began. */
export async function holdGate(db: Db, gate: string, reason: string, by: string): Promise<void> {
  await inTransaction(db, async (trx) => {
    await updateGate(trx, gate, { held: reason, held_by: by });
    await trx('gate')
      .where({ gate, purpose: 'send' })
      .whereNull('held_at')
      .update({ held_at: trx.raw('clock_timestamp()') });
  });
}

/** Lets a gate go on. The time it was held does not count as an outage of the target. False when it was not held. */
export async function releaseGate(db: Db, gate: string): Promise<boolean> {
  return inTransaction(db, async (trx) => {
    const { nowMs, outage } = await lockGate(trx, gate, 'send');
    const ours = trx('gate').where({ gate, purpose: 'send' }).whereNotNull('held');
    const hold: { from: number | null } | undefined = await ours
      .clone()
      .first(trx.raw('(extract(epoch from held_at) * 1000)::float8 as "from"'));
    if (hold === undefined) return false;
    await ours.update({
      held: null,
      held_by: null,
      held_at: null,
      released_at: trx.raw('clock_timestamp()'),
      outage: jsonColumn(outageAfterHold(outage, hold.from, nowMs)),
    });
    return true;
  });
}

/** All replay was held, nobody knows since when: what was known of outages ends, and their clocks begin anew. */
export async function forgetOutages(db: Db): Promise<void> {
  await db('gate')
    .where({ purpose: 'send' })
    .update({ outage: null, released_at: db.raw('clock_timestamp()') });
}

export interface GateOutage {
  /** By whatever: the gate itself, or all replay. */
  readonly held: boolean;
  /** Repairs that wait since this moment or longer are given up (epoch ms); null while nothing is. */
  readonly givenUpSinceMs: number | null;
  readonly releasedMsAgo: number | null;
}

/** How the gate stands to giving up (rule 6.12). */
export async function gateOutage(db: Db, gate: string, giveUpAfterMs: number): Promise<GateOutage> {
  const { rows } = await db.raw<{
    rows: { held: boolean; outage: Outage | null; released: number | null; now: number }[];
  }>(
    `select g.held is not null or m.replay_held is not null as held, g.outage,
            (extract(epoch from g.released_at) * 1000)::float8 as released,
            (extract(epoch from clock_timestamp()) * 1000)::float8 as now
       from meta m left join gate g on g.gate = ? and g.purpose = 'send'`,
    [gate],
  );
  const { held, outage, released, now } = only(rows);
  return {
    held,
    givenUpSinceMs: givenUpSince(outage, released, giveUpAfterMs),
    releasedMsAgo: released === null ? null : now - released,
  };
}

/** A person's watermark below the ceiling (rule 6.17); null clears it. */
export async function overrideWatermark(
  db: Db,
  gate: string,
  override: { perMinute: number; forMs: number | null } | null,
): Promise<void> {
  await updateGate(db, gate, {
    override: override?.perMinute ?? null,
    override_until:
      override === null || override.forMs === null
        ? null
        : db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [override.forMs]),
  });
}

/**
 * The most sends to a target that started in any half-open 60 s within the time looked at, from the committed slots:
 * the evidence for the watermark.
 */
export async function maxSendsInWindow(
  db: Db,
  target: string,
  sinceMs: number,
  windowMs: number,
): Promise<number> {
  const { rows } = await db.raw<{ rows: { most: number }[] }>(
    `select coalesce(max(n), 0)::int as most from (
       select count(*) over (order by slot_at range between current row and :window * interval '1 microsecond' following) as n
         from attempt
        where target = :target and slot_at > clock_timestamp() - :since * interval '1 millisecond'
          and outcome is distinct from 'not-sent') w`,
    // One microsecond less, the column's precision, makes the interval half-open.
    { target, since: sinceMs, window: windowMs * 1000 - 1 },
  );
  return rows[0]?.most ?? 0;
}
