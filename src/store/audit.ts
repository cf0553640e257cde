import type { Instant } from '../reconcile/instant.ts';
import { type Db, only } from './database.ts';
import { jsonColumn } from './json-column.ts';
import { rowId } from './row-id.ts';

/** Who did what, from where and why. `before` and `after` hold what changed; never a secret. */
export interface AuditEntry {
  readonly actor: string;
  /** Where the order came from: `cli host-7`, `api 10.0.0.8`, `page 10.0.0.8`, `start`. */
  readonly origin: string;
  /** A verb: `release-replay`, `dismiss`, `set-watermark`. */
  readonly action: string;
  /** What it was done to: `diff 17`, `target warehouse`. */
  readonly subject: string;
  readonly reason: string | null;
  readonly before: unknown;
  readonly after: unknown;
}

export interface StoredAuditEntry extends AuditEntry {
  readonly id: string;
  readonly at: Instant;
}

/** Call in the transaction that makes the change, so that neither stands without the other. Gives the entry's id. */
export async function recordAudit(db: Db, entry: AuditEntry): Promise<string> {
  const rows: { id: string }[] = await db('audit')
    .insert({
      actor: entry.actor,
      origin: entry.origin,
      action: entry.action,
      subject: entry.subject,
      reason: entry.reason,
      before: jsonColumn(entry.before),
      after: jsonColumn(entry.after),
    })
    .returning('id');
  return only(rows).id;
}

/** Newest first. `before` is the last id of the page before. */
export async function listAudit(
  db: Db,
  filters: { actor?: string; action?: string; subject?: string },
  page: { limit: number; before?: string },
): Promise<StoredAuditEntry[]> {
  const query = db('audit').where(filters).orderBy('id', 'desc').limit(page.limit);
  if (page.before !== undefined) query.where('id', '<', rowId(page.before));
  return query.select('id', 'at', 'actor', 'origin', 'action', 'subject', 'reason', 'before', 'after');
}
