import type { AlertMessage } from '../../src/alert/message.ts';
import { instantFromMillis } from '../../src/reconcile/instant.ts';

/** A message about twelve diffs; each test names what it is about. */
export function alertMessage(changes: Partial<AlertMessage> = {}): AlertMessage {
  return {
    id: 'msg_0001',
    alertId: '7',
    reconciliation: 'orders',
    kind: 'escalated',
    severity: 'action',
    status: 'open',
    title: 'orders: 12 diffs need a person',
    count: 12,
    oldest: instantFromMillis(Date.UTC(2026, 10, 30, 2, 30)),
    samples: [{ key: 'O-1', text: 'http-400 SIGN_ERROR', id: '41' }],
    dominantError: { code: 'http-400', count: 9, of: 12 },
    detail: null,
    link: 'https://trueup.example/',
    command: 'trueup diff 41',
    at: instantFromMillis(Date.UTC(2026, 10, 30, 2, 31)),
    ...changes,
  };
}
