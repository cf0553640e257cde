import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';

type Values = Readonly<Record<string, unknown>>;

export interface OrdersConfig {
  readonly storeUrl: string;
  readonly queueUrl?: string;
  /** Database with `orders` and `bookings`. */
  readonly dataUrl: string;
  /** Address of the bookings server. */
  readonly apiUrl: string;
  /** Whether the downstream is read by HTTP or in its table. */
  readonly read?: 'http' | 'table';
  /** On top of the target's settings. */
  readonly target?: Values;
  /** On top of the reconciliation's settings. */
  readonly reconciliation?: Values;
  /** On top of the whole. */
  readonly top?: Values;
}

const ACTION = {
  type: 'http',
  path: '/bookings',
  body: { order_no: '{key.order_no}', amount: '{source.amount}' },
};

/** A config of one reconciliation `orders` against one target `bookings`, with short times. */
export function ordersConfig(options: OrdersConfig): Record<string, unknown> {
  const repair = { target: 'bookings', action: ACTION, verify: { within: '4s', every: '200ms' } };
  return {
    version: 1,
    store: { url: options.storeUrl },
    ...(options.queueUrl === undefined ? {} : { queue: { url: options.queueUrl } }),
    http: { port: 0 },
    targets: {
      bookings: {
        url: options.apiUrl,
        reads: 'unlimited',
        timeout: { connect: '1s', answer: '2s' },
        ...options.target,
      },
    },
    reconciliations: {
      orders: {
        mode: 'compensate',
        window: { lookback: '1h', settle: '0s' },
        source: {
          type: 'postgres',
          url: options.dataUrl,
          table: 'orders',
          time: 'updated_at',
          fields: ['amount', 'trace_id'],
        },
        downstream: options.read === 'table' ? tableSide(options.dataUrl) : HTTP_SIDE,
        key: ['order_no'],
        compare: { amount: 'decimal' },
        recheck: { delay: '300ms' },
        guard: { maxRatio: 1 },
        repair: { missing: repair },
        ...options.reconciliation,
      },
    },
    ...options.top,
  };
}

const HTTP_SIDE = {
  type: 'http',
  target: 'bookings',
  lookup: { method: 'POST', path: '/bookings/lookup', body: { keys: '{keys}' }, items: '/items', batch: 200 },
  list: { path: '/bookings', query: { from: '{from}', to: '{to}' }, items: '/items' },
  key: { order_no: '/order_no' },
  time: '/at',
  fields: { amount: '/amount' },
};

function tableSide(url: string) {
  return { type: 'postgres', url, table: 'bookings', time: 'booked_at', fields: ['amount'] };
}

export interface ConfigFile {
  readonly path: string;
  readonly dir: string;
  write(config: Values): Promise<void>;
  remove(): Promise<void>;
}

/** A config file in a directory of its own. */
export async function writeConfig(config: Values): Promise<ConfigFile> {
  const dir = await mkdtemp(join(tmpdir(), 'trueup-e2e-'));
  const path = join(dir, 'trueup.yaml');
  const write = (values: Values) => writeFile(path, stringify(values));
  await write(config);
  return { path, dir, write, remove: () => rm(dir, { recursive: true, force: true }) };
}
