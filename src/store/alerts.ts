import { randomUUID } from 'node:crypto';
import type { Instant } from '../reconcile/instant.ts';
import {
  ALERT_KINDS,
  type AlertChanges,
  type AlertKind,
  type AlertMessage,
  type AlertSeverity,
  type OpenAlert,
  type Outgoing,
} from './alert-state.ts';
import type { Db } from './database.ts';
import { jsonColumn } from './json-column.ts';

interface AlertRow {
  id: string;
  reconciliation: string;
  kind: AlertKind;
  severity: AlertSeverity;
  opened_at: Instant;
  notified_at: Instant | null;
  notified_count: string;
}

/** All open alerts of a kind that this release knows. */
export async function openAlerts(db: Db): Promise<OpenAlert[]> {
  const rows: AlertRow[] = await db('alert')
    .where({ state: 'open' })
    .whereIn('kind', [...ALERT_KINDS])
    .orderBy('id')
    .select('id', 'reconciliation', 'kind', 'severity', 'opened_at', 'notified_at', 'notified_count');
  return rows.map((row) => ({
    id: row.id,
    reconciliation: row.reconciliation,
    kind: row.kind,
    severity: row.severity,
    openedAt: row.opened_at,
    notifiedAt: row.notified_at,
    notifiedCount: Number(row.notified_count),
  }));
}

/**
 * Stores the changes and their messages. Call it in the transaction of the state change. A change that another
 * process stored first is left out, with its message, so nothing is told twice.
 */
export async function applyAlerts(db: Db, changes: AlertChanges): Promise<void> {
  for (const change of changes.open) {
    const [row] = await db('alert')
      .insert({
        reconciliation: change.condition.reconciliation,
        kind: change.condition.kind,
        severity: change.condition.severity,
        summary: jsonColumn(change.condition.facts),
        notified_at: db.raw('clock_timestamp()'),
        notified_count: change.condition.count,
      })
      .onConflict(db.raw(`(reconciliation, kind) where state = 'open'`))
      .ignore()
      .returning('id');
    if (row) await insertMessages(db, row.id, change);
  }
  for (const change of changes.notify) {
    const told = await db('alert')
      .where({ id: change.alert.id, state: 'open' })
      .whereRaw('notified_at is not distinct from ?::timestamptz', [change.alert.notifiedAt])
      .update({
        summary: jsonColumn(change.condition.facts),
        notified_at: db.raw('clock_timestamp()'),
        notified_count: change.condition.count,
      });
    if (told === 1) await insertMessages(db, change.alert.id, change);
  }
  for (const change of changes.recover) {
    const ended = await db('alert')
      .where({ id: change.alert.id, state: 'open' })
      .update({ state: 'recovered', recovered_at: db.raw('clock_timestamp()') });
    if (ended === 1) await insertMessages(db, change.alert.id, change);
  }
}

async function insertMessages(db: Db, alertId: string, { draft, channels }: Outgoing): Promise<void> {
  if (channels.length === 0) return;
  const message: AlertMessage = { ...draft, id: `msg_${randomUUID()}`, alertId };
  await db('alert_message').insert(
    channels.map((channel) => ({ alert_id: alertId, channel, message: jsonColumn(message) })),
  );
}
