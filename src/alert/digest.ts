import { createHash } from 'node:crypto';
import { earliest } from '../reconcile/instant.ts';
import type { AlertMessage } from '../store/alert-state.ts';

/**
 * One message in the place of several, for a channel that may not be told them one by one: nothing is dropped, every
 * alert is there with its newest state. Its id follows from the ids it stands for, so a repeated digest of the same
 * messages is recognised. A single message is returned as it is. `messages` are in the order they were written.
 */
export function digest(messages: readonly [AlertMessage, ...AlertMessage[]]): AlertMessage {
  const last = messages.at(-1) ?? messages[0];
  if (messages.length === 1) return last;
  const newest = [...new Map(messages.map((message) => [message.alertId, message])).values()];
  const open = newest.filter((message) => message.status === 'open');
  const urgent = open.filter((message) => message.severity === 'action');
  const shown = [...urgent, ...newest.filter((message) => !urgent.includes(message))];
  const [oldest, ...younger] = newest.flatMap((message) => (message.oldest === null ? [] : [message.oldest]));
  const ids = messages.map((message) => message.id).join(' ');
  return {
    id: `digest_${createHash('sha256').update(ids).digest('hex').slice(0, 32)}`,
    alertId: last.alertId,
    reconciliation: [...new Set(newest.map((message) => message.reconciliation))].join(', '),
    kind: 'digest',
    severity: urgent.length > 0 ? 'action' : 'warning',
    status: open.length > 0 ? 'open' : 'recovered',
    title: `${newest.length} alerts in one message: ${open.length} open, ${newest.length - open.length} recovered`,
    count: newest.length,
    oldest: oldest === undefined ? null : earliest(oldest, ...younger),
    samples: shown.map((message) => ({
      key: message.status === 'recovered' ? 'recovered' : message.severity,
      text: message.title,
      id: message.alertId,
    })),
    dominantError: null,
    detail: null,
    link: last.link,
    command: 'trueup diffs',
    at: last.at,
  };
}
