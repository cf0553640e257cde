import { createStore } from './database.ts';
import { ordersConfig, writeConfig } from './e2e-config.ts';
import {
  type BookingsApi,
  type BookingsOptions,
  createOrders,
  type OrdersDatabase,
  startBookings,
} from './e2e-orders.ts';

export interface Shop {
  readonly data: OrdersDatabase;
  readonly api: BookingsApi;
  readonly storeUrl: string;
  /** The config file. */
  readonly path: string;
  /** The config's values, for another file with some of them changed. */
  readonly values: Readonly<Record<string, unknown>>;
}

export interface ShopOptions {
  readonly bookings?: BookingsOptions;
  readonly target?: object;
  readonly reconciliation?: object;
  readonly read?: 'http' | 'table';
}

/** A store, two sides, a target and the config for them. What takes them down is added to `stops`. */
export async function openShop(stops: (() => Promise<void>)[], options: ShopOptions = {}): Promise<Shop> {
  const [store, data] = await Promise.all([createStore(), createOrders()]);
  stops.push(
    () => store.drop(),
    () => data.drop(),
  );
  const api = await startBookings(data.pool, options.bookings ?? { dedupes: true });
  stops.push(() => api.close());
  const { target = {}, reconciliation = {}, read = 'table' } = options;
  const values = ordersConfig({
    storeUrl: store.url,
    dataUrl: data.url,
    apiUrl: api.url,
    read,
    target: { ...target },
    reconciliation: { ...reconciliation },
  });
  const config = await writeConfig(values);
  stops.push(() => config.remove());
  return { data, api, storeUrl: store.url, path: config.path, values };
}

/** The calls that would book something. */
export const posts = (api: BookingsApi) =>
  api.server.requests.filter((request) => request.url === '/bookings');
