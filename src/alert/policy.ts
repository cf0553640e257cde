import { type Instant, millisOf } from '../reconcile/instant.ts';
import type { CountedCondition, OpenAlert } from '../store/alert-state.ts';

/** What must change so that the open alerts say what is true now. */
export interface Transitions<C extends CountedCondition> {
  readonly open: readonly C[];
  readonly notify: readonly { readonly alert: OpenAlert; readonly condition: C }[];
  readonly recover: readonly OpenAlert[];
}

/** An open alert is told again before its repeat interval when it has grown by this factor. */
const GROWTH = 10;

/**
 * Compares what is wrong now with the alerts that are open. Opened: a condition without an alert. Told again: its
 * count grew tenfold since it was last told, or `repeatMs` passed. Recovered: an alert whose condition is gone.
 * Everything else is silence, so 2,000 failures are one message. `now` is the store's clock.
 */
export function nextAlerts<C extends CountedCondition>(
  conditions: readonly C[],
  open: readonly OpenAlert[],
  { now, repeatMs }: { now: Instant; repeatMs: number },
): Transitions<C> {
  const alerts = new Map(open.map((alert) => [subject(alert), alert]));
  const present = new Set(conditions.map(subject));
  const opened: C[] = [];
  const notify: { alert: OpenAlert; condition: C }[] = [];
  for (const condition of conditions) {
    const alert = alerts.get(subject(condition));
    if (alert === undefined) opened.push(condition);
    else if (isDueAgain(alert, condition, now, repeatMs)) notify.push({ alert, condition });
  }
  return { open: opened, notify, recover: open.filter((alert) => !present.has(subject(alert))) };
}

function isDueAgain(alert: OpenAlert, condition: CountedCondition, now: Instant, repeatMs: number): boolean {
  if (alert.notifiedAt === null) return true;
  if (condition.count >= GROWTH * Math.max(1, alert.notifiedCount)) return true;
  return millisOf(now) - millisOf(alert.notifiedAt) >= repeatMs;
}

function subject({ reconciliation, kind }: Pick<CountedCondition, 'reconciliation' | 'kind'>): string {
  return JSON.stringify([reconciliation, kind]);
}
