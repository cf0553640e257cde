import type { IncomingMessage } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { Ports } from '../../src/app.ts';
import { MINUTE } from '../../src/compensate/gate/watermark.ts';
import { type Key, keyText, type SideRecord } from '../../src/reconcile/record.ts';
import type { Side } from '../../src/reconcile/side.ts';
import { createSide } from '../../src/reconcile/sides/create.ts';
import type { RunDetail } from '../../src/store/list-runs.ts';
import { createStore } from '../support/database.ts';
import { type RunningApp, startApp } from '../support/e2e-app.ts';
import { ordersConfig, writeConfig } from '../support/e2e-config.ts';
import {
  type BookingsOptions,
  createOrders,
  type Order,
  type OrdersDatabase,
  orders,
  startBookings,
} from '../support/e2e-orders.ts';

/** Each mechanism is taken away once, by ports that only tests have: what it prevents must then happen. */

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

interface Replay {
  readonly missing: readonly Order[];
  readonly downstream: BookingsOptions;
  readonly read: 'http' | 'table';
  readonly target: Readonly<Record<string, unknown>>;
  readonly ports?: Ports;
  readonly timeoutMs: number;
}

async function replay(options: Replay): Promise<{ run: RunDetail; data: OrdersDatabase }> {
  const [store, data] = await Promise.all([createStore(), createOrders()]);
  stops.push(
    () => store.drop(),
    () => data.drop(),
  );
  await data.place([...options.missing, ...orders('there', 20)]);
  await data.book(orders('there', 20));
  const api = await startBookings(data.pool, options.downstream);
  stops.push(() => api.close());
  const { read, target } = options;
  const config = await writeConfig(
    ordersConfig({ storeUrl: store.url, dataUrl: data.url, apiUrl: api.url, read, target }),
  );
  stops.push(() => config.remove());
  const running: RunningApp = await startApp({
    configPath: config.path,
    ...(options.ports === undefined ? {} : { ports: options.ports }),
  });
  stops.push(() => running.stop());
  return { run: await running.reconcile({ timeoutMs: options.timeoutMs }), data };
}

const twice = (effects: ReadonlyMap<string, number>) => [...effects.values()].filter((n) => n > 1).length;

describe('the gate', () => {
  const CAPACITY = { calls: 6, withinMs: 4_000 };
  const DOWN_MS = 5_000;
  const missing = orders('lost', 14);
  /** One a second, so never more than five in four seconds, of which the downstream could take six. */
  const target = {
    watermark: 60,
    concurrency: 64,
    // A busy machine is no failure.
    timeout: { connect: '5s', answer: '10s' },
    idempotency: { dedupes: true },
    retry: { wait: { base: '200ms', cap: '1s' } },
    breaker: { open: '1s' },
  };

  /** Above its capacity it answers 503 to everything, for a while. */
  class Fragile {
    collapses = 0;
    #writes: number[] = [];
    #downUntil = 0;

    readonly admit = (request: IncomingMessage, at: number): boolean => {
      if (at < this.#downUntil) return false;
      if (request.method !== 'POST' || request.url !== '/bookings') return true;
      this.#writes = [...this.#writes.filter((write) => write > at - CAPACITY.withinMs), at];
      if (this.#writes.length <= CAPACITY.calls) return true;
      this.collapses += 1;
      this.#downUntil = at + DOWN_MS;
      this.#writes = [];
      return false;
    };
  }

  it('never lets a downstream collapse whose capacity is above the watermark', async () => {
    const fragile = new Fragile();
    const downstream = { dedupes: true, admit: fragile.admit };
    const { run, data } = await replay({ missing, downstream, read: 'http', target, timeoutMs: 60_000 });
    expect(fragile.collapses).toBe(0);
    expect(run.counts).toMatchObject({ source: 34, missing: 14 });
    // Not one call failed: each order took exactly one.
    expect(run.compensations).toMatchObject({ planned: 14, sent: 14, verified: 14, escalated: 0 });
    expect((await data.effects()).size).toBe(34);
  });

  it('bypassed, the same downstream collapses, and still every order arrives once', async () => {
    const fragile = new Fragile();
    const downstream = { dedupes: true, admit: fragile.admit };
    // 60 calls in 50 ms instead of a minute are never reached.
    const ports = { timing: { ...MINUTE, windowMs: 50 } };
    const { run, data } = await replay({
      missing,
      downstream,
      read: 'http',
      target,
      ports,
      timeoutMs: 180_000,
    });
    expect(fragile.collapses).toBeGreaterThanOrEqual(1);
    expect(run.compensations).toMatchObject({ planned: 14, open: 0, escalated: 0 });
    expect(run.compensations.sent).toBeGreaterThan(14);
    const effects = await data.effects();
    expect(effects.size).toBe(34);
    expect(twice(effects)).toBe(0);
  });
});

describe('the looks', () => {
  const missing = orders('lost', 30);
  const slow = new Set(missing.filter((_, index) => index % 5 === 0).map((order) => order.no));
  const target = {
    watermark: 6000,
    timeout: { connect: '1s', answer: '600ms' },
    // It books a row for each call, so only looking tells whether a call whose answer was lost has taken.
    idempotency: { dedupes: false },
    appliesWithin: '1s',
  };
  /** The first call about some orders is answered too late, after the work was done. */
  const downstream: BookingsOptions = {
    dedupes: false,
    react: ({ no, nth }) => (nth === 1 && slow.has(no) ? { do: 'late', afterMs: 2_000 } : { do: 'book' }),
  };

  it('keep a downstream that ignores keys from booking an order twice', async () => {
    const { run, data } = await replay({ missing, downstream, read: 'table', target, timeoutMs: 60_000 });
    expect(run.compensations).toMatchObject({ planned: 30, verified: 30, escalated: 0 });
    const effects = await data.effects();
    expect(effects.size).toBe(50);
    expect(twice(effects)).toBe(0);
  });

  it('bypassed, orders whose answer was lost are booked twice', async () => {
    const ports: Ports = {
      openSide: (config, context) => {
        const side = createSide(config, context);
        return context.name.endsWith('downstream') ? asBefore(side) : side;
      },
    };
    const { run, data } = await replay({
      missing,
      downstream,
      read: 'table',
      target,
      ports,
      timeoutMs: 60_000,
    });
    const effects = await data.effects();
    expect([...slow].filter((no) => effects.get(no) === 1)).toEqual([]);
    // Nothing that was sent is ever seen, so a person hears of all of it.
    expect(run.compensations).toMatchObject({ planned: 30, verified: 0, escalated: 30 });
  });
});

/** A side whose lookups answer for ever what the first one about a key found: looking again shows nothing new. */
function asBefore(side: Side): Side {
  const first = new Map<string, readonly SideRecord[]>();
  const lookup = async (keys: readonly Key[], signal: AbortSignal): Promise<SideRecord[]> => {
    const fresh = keys.filter((key) => !first.has(keyText(key)));
    const found = fresh.length === 0 ? [] : await side.lookup(fresh, signal);
    for (const key of fresh) {
      const records = found.filter((record) => keyText(record.key) === keyText(key));
      first.set(keyText(key), records);
    }
    return keys.flatMap((key) => first.get(keyText(key)) ?? []);
  };
  return new Proxy(side, {
    get: (target, name) => {
      if (name === 'lookup') return lookup;
      const member = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
