import { countConditions } from '../store/alert-conditions.ts';
import { describeCondition } from '../store/alert-facts.ts';
import type { Condition, CountedCondition } from '../store/alert-state.ts';
import { applyAlerts, openAlerts } from '../store/alerts.ts';
import { type Db, storeClock } from '../store/database.ts';
import { nextAlerts, type Transitions } from './policy.ts';
import { type Routing, routeAlerts } from './route.ts';

/**
 * Makes the alerts say what the store says now, and writes what must be told into the outbox. Runs in the caller's
 * transaction, so that a state change and its message are one commit; cheap enough to be called by a timer as well,
 * which finds what no state change announces (a target that stays down). `repeatMs` and the routing come from the
 * config's `alerts`. Two callers at once tell everything once.
 */
export async function refreshAlerts(
  db: Db,
  alerts: Routing & { readonly repeat: number },
): Promise<Transitions<Condition>> {
  // The open alerts first: one that another process opens meanwhile must not look recovered to this one.
  const open = await openAlerts(db);
  const counted = await countConditions(db);
  const now = await storeClock(db);
  const transitions = await described(db, nextAlerts(counted, open, { now, repeatMs: alerts.repeat }));
  const failing = new Set(
    counted.flatMap(({ kind, reconciliation }) => (kind === 'channel-failing' ? [reconciliation] : [])),
  );
  await applyAlerts(db, routeAlerts(transitions, { routing: alerts, failing, now }));
  return transitions;
}

/** Samples and errors are read only for what is told now. */
async function described(
  db: Db,
  { open, notify, recover }: Transitions<CountedCondition>,
): Promise<Transitions<Condition>> {
  const opened: Condition[] = [];
  for (const condition of open) opened.push(await describeCondition(db, condition));
  const told: Transitions<Condition>['notify'][number][] = [];
  for (const { alert, condition } of notify) {
    told.push({ alert, condition: await describeCondition(db, condition) });
  }
  return { open: opened, notify: told, recover };
}
