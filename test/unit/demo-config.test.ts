import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';

const FILE = fileURLToPath(new URL('../../config/demo.yaml', import.meta.url));
const ENV = {
  DEMO_SHOP_URL: 'postgres://user:word@127.0.0.1:1/shop',
  DEMO_GATEWAY_URL: 'http://127.0.0.1:2',
  DEMO_WAREHOUSE_API_URL: 'http://127.0.0.1:3',
  DEMO_WAREHOUSE_DB_URL: 'postgres://user:word@127.0.0.1:1/warehouse',
  DEMO_CHAT_URL: 'http://127.0.0.1:4/alerts',
};

describe('config/demo.yaml', () => {
  it('is an ordinary configuration, with what the demo puts into the environment', async () => {
    const { config } = await loadConfig(FILE, { ...ENV, TRUEUP_HTTP_PORT: '7171' });
    expect(config.http.port).toBe(7171);
    expect(config.store.url).toBeUndefined();
    expect(config.targets).toMatchObject({
      gateway: { watermark: 600, idempotency: { dedupes: true } },
      warehouse: { watermark: 600, idempotency: { dedupes: false } },
    });
    expect(Object.keys(config.reconciliations)).toEqual(['payments', 'warehouse']);
  });

  it('waits longer for an answer to become visible than the demo lets one be late', async () => {
    const { config } = await loadConfig(FILE, ENV);
    // The gateway books what it called PENDING two seconds later, and holds some answers back for six.
    expect(config).toMatchObject({
      targets: { gateway: { timeout: { answer: 2_000 } } },
      reconciliations: { payments: { repair: { missing: { verify: { within: 8_000, every: 1_000 } } } } },
    });
  });
});
