import { stringify } from 'yaml';

export interface ScenarioAddresses {
  readonly store: string;
  readonly queue: string;
  readonly source: string;
  readonly downstream: string;
  readonly gateway: string;
  readonly warehouse: string;
  readonly chat: string;
}

/** Far away, so that no schedule fires by itself; the queue's schedulers exist all the same. */
const ONCE_A_YEAR = '0 4 1 1 *';

/**
 * An ordinary config of two reconciliations, with short times: `payments` against a gateway that dedupes by key and is
 * read over HTTP, `parcels` against a warehouse that ignores keys and is read in its database.
 */
export function scenarioConfig(at: ScenarioAddresses): string {
  const timeout = { connect: '1s', answer: '1s' };
  const retry = { attempts: 10, wait: { base: '100ms', factor: 1.5, cap: '400ms' } };
  // A killed worker and a planted fault are no reason to let the target rest.
  const breaker = { consecutive: 100, ratio: 0.95, minimum: 100, open: '500ms' };
  const action = {
    type: 'http',
    path: '/payments',
    body: {
      order_no: '{key.order_no}',
      status: '{source.status}',
      amount: '{source.amount}',
    },
    answers: { pending: [{ pointer: '/code', in: ['PENDING'] }] },
  };
  const verify = { within: '5s', every: '200ms' };
  const common = {
    mode: 'compensate',
    schedule: ONCE_A_YEAR,
    window: { lookback: '1h', settle: '0s', chunk: '1h' },
    key: ['order_no'],
    compare: { status: 'text', amount: 'decimal' },
    recheck: { delay: '300ms' },
  };
  return stringify({
    version: 1,
    store: { url: at.store },
    queue: { url: at.queue },
    http: { port: 0 },
    log: { level: 'info' },
    targets: {
      gateway: {
        url: at.gateway,
        watermark: 6000,
        reads: 'unlimited',
        timeout,
        retry,
        breaker,
        idempotency: { dedupes: true },
      },
      warehouse: {
        url: at.warehouse,
        watermark: 'unlimited',
        timeout,
        retry,
        breaker,
        // The target keeps this promise with room to spare, also on a busy machine.
        appliesWithin: '1500ms',
      },
    },
    reconciliations: {
      payments: {
        ...common,
        source: side(at.source, 'shop.payments'),
        downstream: {
          type: 'http',
          target: 'gateway',
          lookup: {
            method: 'POST',
            path: '/payments/lookup',
            body: { keys: '{keys}' },
            items: '/items',
            batch: 100,
          },
          list: { path: '/payments', query: { from: '{from}', to: '{to}' }, items: '/items' },
          key: { order_no: '/order_no' },
          time: '/at',
          fields: { status: '/status', amount: '/amount' },
        },
        repair: {
          missing: { target: 'gateway', action, verify },
          mismatched: { target: 'gateway', action, verify },
        },
      },
      parcels: {
        ...common,
        source: side(at.source, 'shop.parcels'),
        downstream: side(at.downstream, 'warehouse.payment'),
        repair: {
          missing: { target: 'warehouse', action, verify },
          mismatched: { target: 'warehouse', action, verify },
        },
      },
    },
    alerts: { channels: { chat: { type: 'webhook', url: at.chat } }, warning: ['chat'], action: ['chat'] },
  });
}

function side(url: string, table: string) {
  return { type: 'postgres', url, table, time: 'at', fields: ['status', 'amount'], pageSize: 20 };
}
