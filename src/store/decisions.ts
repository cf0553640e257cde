import { type Key, keyText } from '../reconcile/record.ts';
import type { Db } from './database.ts';

/**
 * Of a diff `d`: a person resolved or dismissed it, no later look showed the records otherwise, and it has not
 * expired. It covers findings with the very digests it was taken on (rule 6.5).
 */
export const DECISION_STANDS = `d.state in ('resolved', 'dismissed') and d.lapsed_at is null
  and (d.dismissed_until is null or d.dismissed_until > clock_timestamp())`;

/**
 * Ends the decisions on these keys, for good: the records were seen otherwise than when the person decided, or the
 * time is over. The rows stay as what happened; their timeline says why they no longer count.
 */
export async function lapseDecisions(
  db: Db,
  reconciliation: string,
  keys: readonly Key[],
  why: string,
): Promise<void> {
  if (keys.length === 0) return;
  await db.raw(
    `with lapsed as (
       update diff set lapsed_at = clock_timestamp()
        where reconciliation = :reconciliation and business_key = any(:keys::text[])
          and state in ('resolved', 'dismissed') and lapsed_at is null
       returning id)
     insert into diff_event (diff_id, event, detail)
     select id, 'lapsed', jsonb_build_object('why', :why::text) from lapsed`,
    { reconciliation, keys: keys.map(keyText), why },
  );
}
