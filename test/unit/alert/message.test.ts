import { describe, expect, test } from 'vitest';
import { openDraft, recoveredDraft, renderText } from '../../../src/alert/message.ts';
import { instantFromMillis } from '../../../src/reconcile/instant.ts';
import { ALERT_KINDS, type Condition, SEVERITY } from '../../../src/store/alert-state.ts';
import { alertMessage } from '../../support/alert-message.ts';

const NOW = instantFromMillis(Date.UTC(2026, 10, 30, 2, 31));
const bytes = (text: string) => Buffer.byteLength(text);

function condition(changes: Partial<Condition> = {}): Condition {
  const facts = { oldest: NOW, samples: [], dominantError: null, detail: null };
  return { reconciliation: 'orders', kind: 'diffs', severity: 'warning', count: 2000, facts, ...changes };
}

describe('the message of a condition', () => {
  test('says the count in its title and how to see more', () => {
    const draft = openDraft(condition(), NOW, 'https://trueup.example/');
    expect(draft.title).toBe('orders: 2,000 diffs found');
    expect(draft.command).toBe('trueup diffs --where reconciliation=orders');
    expect(draft.link).toBe('https://trueup.example/');
  });

  test('says one thing in the singular', () => {
    expect(openDraft(condition({ count: 1 }), NOW, null).title).toBe('orders: 1 diff found');
  });

  test('exists for every kind, open and recovered', () => {
    for (const kind of ALERT_KINDS) {
      const severity = SEVERITY[kind];
      expect(openDraft(condition({ kind, severity }), NOW, null).title).toContain('orders');
      const alert = { id: '1', reconciliation: 'orders', kind, severity, openedAt: NOW, notifiedAt: NOW };
      const recovered = recoveredDraft({ ...alert, notifiedCount: 2000 }, NOW, null);
      expect(recovered).toMatchObject({ status: 'recovered', count: 0, detail: '2,000 when last told' });
    }
  });
});

describe('renderText', () => {
  test('shows title, counts, detail, most frequent error, command, samples and link', () => {
    const text = renderText(alertMessage({ detail: 'mostly one hour late' }), { bytes: 2000 });
    expect(text.split('\n')).toEqual([
      '[action needed] orders: 12 diffs need a person',
      'count 12 · oldest 2026-11-30 02:30:00 UTC',
      'mostly one hour late',
      'most frequent: http-400 (9 of 12)',
      'see: trueup diff 41',
      '- O-1: http-400 SIGN_ERROR',
      'https://trueup.example/',
    ]);
  });

  test('drops samples first and keeps title, counts and link when it is cut', () => {
    const samples = [1, 2, 3].map((n) => ({ key: `订单-${n}`, text: '签名错误'.repeat(60), id: String(n) }));
    const text = renderText(alertMessage({ samples }), { bytes: 300 });
    expect(bytes(text)).toBeLessThanOrEqual(300);
    const lines = text.split('\n');
    expect(lines[0]).toBe('[action needed] orders: 12 diffs need a person');
    expect(lines[1]).toContain('count 12');
    expect(lines.at(-1)).toBe('https://trueup.example/');
    expect(text).toContain('…');
    expect(text).not.toContain('\ufffd');
    expect(text).not.toContain('订单-3');
  });

  test('cuts a long title before it cuts the counts or the link', () => {
    const text = renderText(alertMessage({ title: '对账'.repeat(500) }), { bytes: 200 });
    expect(bytes(text)).toBeLessThanOrEqual(200);
    expect(text).toContain('count 12');
    expect(text.endsWith('https://trueup.example/')).toBe(true);
  });

  test('keeps a key with line ends on one line', () => {
    const samples = [{ key: 'O-1\nSEE https://evil.example', text: 'x\r\ny', id: null }];
    const text = renderText(alertMessage({ samples }), { bytes: 2000 });
    expect(text).toContain('- O-1 SEE https://evil.example: x y');
  });

  test('a key named @all calls nobody, and an address with @ stays as it is', () => {
    const samples = [
      { key: '@all', text: '@everyone @所有人 @Channel', id: null },
      { key: 'ann@allowed.example', text: 'x', id: null },
    ];
    const text = renderText(alertMessage({ samples }), { bytes: 2000 });
    expect(text).not.toMatch(/@(all\b|everyone|所有人|channel)/i);
    expect(text).toContain('ann@allowed.example');
  });
});
