import type { Reconciliation } from '../config/schema.ts';
import type { Side } from '../reconcile/side.ts';

/** A reconciliation with its two sides opened: what the stages need to read. */
export interface Pair {
  readonly name: string;
  readonly config: Reconciliation;
  /** Zone for schedules and local days. */
  readonly zone: string;
  readonly source: Side;
  readonly downstream: Side;
}
