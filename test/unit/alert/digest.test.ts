import { expect, test } from 'vitest';
import { digest } from '../../../src/alert/digest.ts';
import { renderText } from '../../../src/alert/message.ts';
import { alertMessage } from '../../support/alert-message.ts';

test('one message stays as it is', () => {
  expect(digest([alertMessage()])).toEqual(alertMessage());
});

test('every alert is in a digest, once, with its newest state', () => {
  const merged = digest([
    alertMessage({ id: 'a', alertId: '1', severity: 'warning', title: 'orders: 5 diffs found' }),
    alertMessage({ id: 'b', alertId: '2', title: 'refunds: 2 diffs need a person' }),
    alertMessage({
      id: 'c',
      alertId: '1',
      severity: 'warning',
      status: 'recovered',
      title: 'orders: no diff',
    }),
  ]);
  expect(merged).toMatchObject({ kind: 'digest', status: 'open', severity: 'action', count: 2 });
  const text = renderText(merged, { bytes: 2000 });
  expect(text).toContain('2 alerts in one message: 1 open, 1 recovered');
  expect(text).toContain('- action: refunds: 2 diffs need a person');
  expect(text).toContain('- recovered: orders: no diff');
  expect(text).not.toContain('5 diffs found');
});

test('what needs a person comes first, where the cut does not reach it', () => {
  const warnings = Array.from({ length: 30 }, (_, n) =>
    alertMessage({ id: `w${n}`, alertId: `${n}`, severity: 'warning', title: `r${n}: diffs found` }),
  );
  const merged = digest([
    alertMessage({ id: 'x', alertId: 'x', severity: 'warning' }),
    ...warnings,
    alertMessage(),
  ]);
  expect(merged.samples[0]?.text).toBe('orders: 12 diffs need a person');
  expect(merged.count).toBe(31);
});

test('the id follows from the messages it stands for', () => {
  const a = alertMessage({ id: 'a' });
  const b = alertMessage({ id: 'b' });
  const c = alertMessage({ id: 'c' });
  expect(digest([a, b]).id).toBe(digest([a, b]).id);
  expect(digest([a, b]).id).not.toBe(digest([a, b, c]).id);
});
