import type { Outage } from '../compensate/gate/outage.ts';
import { type RateState, START_RATE } from '../compensate/gate/rate.ts';
import type { SlotState } from '../compensate/gate/watermark.ts';
import type { Watermark } from '../config/schema.ts';
import { type Db, only } from './database.ts';
import { jsonColumn } from './json-column.ts';

/**
 * The gate's row and the lock on it: one row per target and purpose. The arithmetic is pure (compensate/gate); here
 * is the database clock, read after the lock was taken (rule 6.14).
 */

export type Purpose = 'send' | 'read' | 'run';

export interface GateRow {
  readonly slots: SlotState | null;
  readonly rate: RateState | Record<string, never>;
  readonly override: number | null;
  readonly override_live: boolean;
  readonly outage: Outage | null;
  readonly held: string | null;
  readonly ceiling: number | null;
  readonly system_identifier: string | null;
}

export interface LockedGate {
  readonly nowMs: number;
  readonly slots: SlotState | null;
  readonly rate: RateState;
  readonly override: number | null;
  /** Of the active configuration; a process that works by another one obeys it too. */
  readonly ceiling: number | null;
  readonly held: string | null;
  readonly outage: Outage | null;
  readonly system: string | null;
  /** This process's monotonic times before and after the store's clock was read (rule 6.14). */
  readonly m0: number;
  readonly m1: number;
}

export async function lockGate(trx: Db, gate: string, purpose: Purpose): Promise<LockedGate> {
  const row = (await readLocked(trx, gate, purpose)) ?? (await createGate(trx, gate, purpose));
  // A second statement: within the first, the clock would have been read before the lock was waited for. Timed by
  // itself, so that neither the wait for the lock nor the commit counts against the validity of the slot.
  const m0 = performance.now();
  const { rows } = await trx.raw<{ rows: { now: number; system: string | null; held: string | null }[] }>(
    `select (extract(epoch from clock_timestamp()) * 1000)::float8 as now, system_identifier as system,
            replay_held as held from meta`,
  );
  const m1 = performance.now();
  const store = only(rows);
  return {
    nowMs: store.now,
    m0,
    m1,
    // Slots written by another server are lost state: that clock is not this one (rule 6.15).
    slots: row.system_identifier === store.system ? row.slots : null,
    rate: rateOf(row),
    override: row.override_live ? row.override : null,
    ceiling: row.ceiling,
    held: purpose === 'send' ? (row.held ?? store.held) : row.held,
    outage: row.outage,
    system: store.system,
  };
}

async function readLocked(trx: Db, gate: string, purpose: Purpose): Promise<GateRow | undefined> {
  return trx('gate')
    .where({ gate, purpose })
    .forUpdate()
    .first(
      'slots',
      'rate',
      'override',
      'held',
      'ceiling',
      'outage',
      'system_identifier',
      trx.raw('coalesce(override_until > clock_timestamp(), override is not null) as override_live'),
    );
}

async function createGate(trx: Db, gate: string, purpose: Purpose): Promise<GateRow> {
  await trx('gate').insert({ gate, purpose }).onConflict(['gate', 'purpose']).ignore();
  const row = await readLocked(trx, gate, purpose);
  if (!row) throw new Error(`gate ${gate} cannot be read back`);
  return row;
}

/** A gate that was never used knows nothing against its target. */
export function rateOf(row: Pick<GateRow, 'rate'>): RateState {
  return 'buckets' in row.rate ? (row.rate as RateState) : START_RATE;
}

export const ceilingOf = (watermark: Watermark): number | null =>
  watermark === 'unlimited' ? null : watermark;

/** The lesser of this process's watermark and the active configuration's. */
export function lesser(watermark: Watermark, active: number | null): number | null {
  const own = ceilingOf(watermark);
  if (own === null || active === null) return own ?? active;
  return Math.min(own, active);
}

export async function saveSlots(
  trx: Db,
  gate: string,
  purpose: Purpose,
  slots: SlotState,
  system: string | null,
): Promise<void> {
  await trx('gate')
    .where({ gate, purpose })
    .update({
      slots: jsonColumn(slots),
      system_identifier: system,
      updated_at: trx.raw('clock_timestamp()'),
    });
}
