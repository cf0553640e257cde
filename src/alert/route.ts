import type { Instant } from '../reconcile/instant.ts';
import type { AlertChanges, AlertKind, AlertSeverity, Condition } from '../store/alert-state.ts';
import { openDraft, recoveredDraft } from './message.ts';
import type { Transitions } from './policy.ts';

/** The part of the config's `alerts` that says who is told. */
export interface Routing {
  readonly warning: readonly string[];
  readonly action: readonly string[];
  readonly link?: string | undefined;
}

/**
 * Gives every transition its message and its channels. A failing channel is reported through the next one in the
 * order of `action`, then `warning`; `failing` holds all that fail now, so that the report does not go to a channel
 * that is broken too while another works.
 */
export function routeAlerts(
  transitions: Transitions<Condition>,
  { routing, failing, now }: { routing: Routing; failing: ReadonlySet<string>; now: Instant },
): AlertChanges {
  const link = routing.link ?? null;
  const to = (alert: { kind: AlertKind; severity: AlertSeverity; reconciliation: string }) =>
    alert.kind === 'channel-failing'
      ? nextChannel(alert.reconciliation, routing, failing)
      : [...new Set(routing[alert.severity])];
  return {
    open: transitions.open.map((condition) => ({
      condition,
      draft: openDraft(condition, now, link),
      channels: to(condition),
    })),
    notify: transitions.notify.map(({ alert, condition }) => ({
      alert,
      condition,
      draft: openDraft(condition, now, link),
      channels: to(condition),
    })),
    recover: transitions.recover.map((alert) => ({
      alert,
      draft: recoveredDraft(alert, now, link),
      channels: to(alert),
    })),
  };
}

function nextChannel(channel: string, routing: Routing, failing: ReadonlySet<string>): string[] {
  const all = [...new Set([...routing.action, ...routing.warning])];
  const at = all.indexOf(channel);
  const others = [...all.slice(at + 1), ...all.slice(0, Math.max(0, at))];
  const next = others.find((name) => !failing.has(name)) ?? others[0];
  return next === undefined ? [] : [next];
}
