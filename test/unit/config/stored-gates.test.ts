import { expect, it } from 'vitest';
import { storedGates } from '../../../src/config/stored-gates.ts';

/* biome-ignore-start lint/suspicious/noTemplateCurlyInString: the config's own interpolation */
it('reads targets and their gates without the environment that the rest asks for', () => {
  const document = {
    targets: {
      gateway: { url: '${env:GATEWAY_URL}', watermark: 50 },
      refunds: { url: '${env:GATEWAY_URL}', upstream: 'gateway' },
      ledger: { url: '${file:/no/such/file}', upstream: '${env:LEDGER_GATE:-books}' },
    },
  };
  expect(storedGates(document, {}).targets).toEqual({
    gateway: { watermark: 'unlimited' },
    refunds: { watermark: 'unlimited', upstream: 'gateway' },
    ledger: { watermark: 'unlimited', upstream: 'books' },
  });
});

it('holds no gate whose name it cannot tell', () => {
  const document = { targets: { ledger: { upstream: '${env:LEDGER_GATE}' } } };
  expect(() => storedGates(document, {})).toThrow(/gate of ledger.*LEDGER_GATE/);
});
/* biome-ignore-end lint/suspicious/noTemplateCurlyInString: the config's own interpolation */

it('knows of configurations without targets', () => {
  expect(storedGates({}, {})).toEqual({ targets: {} });
});
