import { expect, test } from 'vitest';
import { routeAlerts } from '../../../src/alert/route.ts';
import { instantFromMillis } from '../../../src/reconcile/instant.ts';
import type { Condition } from '../../../src/store/alert-state.ts';

const now = instantFromMillis(Date.UTC(2026, 10, 30));
const routing = { warning: ['chat'], action: ['chat', 'pager', 'mail'] };
const facts = { oldest: null, samples: [], dominantError: null, detail: null };
const diffs: Condition = { reconciliation: 'orders', kind: 'diffs', severity: 'warning', count: 1, facts };
const failing = (channel: string): Condition => ({
  ...diffs,
  reconciliation: channel,
  kind: 'channel-failing',
  severity: 'action',
});

function channelsFor(condition: Condition, broken: string[] = [], to: typeof routing = routing) {
  const transitions = { open: [condition], notify: [], recover: [] };
  return routeAlerts(transitions, { routing: to, failing: new Set(broken), now }).open[0]?.channels;
}

test('a severity goes to its channels, to each once', () => {
  expect(channelsFor(diffs)).toEqual(['chat']);
  expect(channelsFor({ ...diffs, severity: 'action' })).toEqual(['chat', 'pager', 'mail']);
  expect(channelsFor(diffs, [], { warning: ['chat', 'chat'], action: [] })).toEqual(['chat']);
});

test('a failing channel is reported through the next one', () => {
  expect(channelsFor(failing('chat'), ['chat'])).toEqual(['pager']);
  expect(channelsFor(failing('mail'), ['mail'])).toEqual(['chat']);
});

test('the report skips channels that fail too, as long as one works', () => {
  expect(channelsFor(failing('chat'), ['chat', 'pager'])).toEqual(['mail']);
  expect(channelsFor(failing('chat'), ['chat', 'pager', 'mail'])).toEqual(['pager']);
});

test('a lone channel is not asked to report its own failure', () => {
  expect(channelsFor(failing('chat'), ['chat'], { warning: ['chat'], action: ['chat'] })).toEqual([]);
});
