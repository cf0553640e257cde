import { expect, it } from 'vitest';
import { type StarterAnswers, starterConfig } from '../../../src/config/starter.ts';
import { TrueupError } from '../../../src/error.ts';
import { load } from './in-file.ts';

const ANSWERS: StarterAnswers = {
  name: 'orders',
  key: ['order_no'],
  source: {
    urlEnv: 'A',
    table: 'public.orders',
    key: { order_no: 'order_no' },
    time: 'updated_at',
    fields: { amount: 'amount' },
  },
  downstream: {
    urlEnv: 'B',
    table: 'public.copies',
    key: { order_no: 'no' },
    time: null,
    fields: { amount: 'total' },
  },
  compare: { amount: 'decimal' },
  warnings: ['one\nline'],
};
const ENV = { A: 'postgres://h/a', B: 'postgres://h/b' };

it('writes a config that loads, checks and repairs nothing', async () => {
  const yaml = starterConfig(ANSWERS);
  expect(yaml).toContain('# Look at this: one line');
  const { config } = await load(yaml, ENV);
  expect(config.reconciliations['orders']).toMatchObject({
    mode: 'check',
    schedule: { cron: '*/15 * * * *' },
    window: { lookback: 3_600_000 },
    source: { table: 'public.orders', key: ['order_no'], time: 'updated_at', fields: ['amount'] },
    downstream: { table: 'public.copies', key: { order_no: 'no' }, fields: { amount: 'total' } },
    compare: { amount: { type: 'decimal' } },
    repair: { missing: 'report', mismatched: 'report', extra: 'report' },
  });
});

it('keeps names that YAML or interpolation would read as something else', async () => {
  const odd = ['yes', '3', 'a: b', '# c', `\${env:X}`, '$${', "it's", 'line\nbreak', 'null', '- d', '{e}'];
  const names = Object.fromEntries(odd.map((name) => [name, `${name}!`]));
  const yaml = starterConfig({
    ...ANSWERS,
    key: ['true', '- k'],
    source: { ...ANSWERS.source, key: { true: 'x', '- k': 'y' }, time: `\${t`, fields: names },
    downstream: { ...ANSWERS.downstream, key: { true: 'true', '- k': '- k' }, fields: names },
    compare: Object.fromEntries(odd.map((name) => [name, 'text' as const])),
  });
  const { config } = await load(yaml, ENV);
  const { source, key, compare } = config.reconciliations['orders'] ?? {};
  expect(key).toEqual(['true', '- k']);
  expect(source).toMatchObject({ time: `\${t`, fields: names, key: { true: 'x', '- k': 'y' } });
  expect(Object.keys(compare ?? {}).sort()).toEqual([...odd].sort());
});

it('refuses the name of a variable that no file can refer to', () => {
  expect(() => starterConfig({ ...ANSWERS, source: { ...ANSWERS.source, urlEnv: 'MY-URL' } })).toThrow(
    TrueupError,
  );
});
