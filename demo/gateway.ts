import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import {
  type Answer,
  BadRequest,
  type Call,
  type JsonServer,
  startJsonServer,
  textOf,
} from './json-server.ts';
import { Mischief } from './mischief.ts';
import { type Effect, PaymentTables } from './payment-tables.ts';
import type { Role } from './scenario.ts';

/** Longer than the client waits, so that the answer is lost although the work was done. */
const SLOW_ANSWER_MS = 6_000;
/** A call that is on its way arrives this long after the gateway was first asked about its order. */
const IN_FLIGHT_MS = 2_000;
/** A call answered PENDING takes effect after this. */
const PENDING_MS = 2_000;
/** The late original calls arrive this long after the first replayed one. */
const LATE_MS = 3_000;
const PAGE = 1_000;

/** What went over the counter, for the demo's progress line. */
export interface GatewayStats {
  readonly calls: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly inLastMinute: number;
}

/**
 * A payment gateway as they are: it dedupes by `Idempotency-Key`, it is sometimes down, slow or undecided, and it
 * writes down every call that arrives. `seed` decides which calls go wrong.
 */
export async function startGateway(databaseUrl: string, seed: number): Promise<JsonServer> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 16 });
  const gateway = new Gateway(new PaymentTables(pool), seed);
  await gateway.load();
  const server = await startJsonServer({
    'POST /payments': (call) => gateway.write(call),
    'POST /payments/lookup': (call) => gateway.lookup(call),
    'GET /payments': (call) => gateway.list(call),
    'GET /stats': (call) => ({ status: 200, body: gateway.stats(call.arrivedAt) }),
  });
  return {
    ...server,
    close: async () => {
      await server.close();
      await gateway.close();
      await pool.end();
    },
  };
}

class Gateway {
  readonly #tables: PaymentTables;
  readonly #mischief: Mischief;
  readonly #roles = new Map<string, { role: Role; payment: Effect }>();
  readonly #expected = new Set<string>();
  readonly #closing = new AbortController();
  readonly #pending = new Set<Promise<void>>();
  readonly #outcomes = new Map<string, number>();
  #lastMinute: number[] = [];
  #calls = 0;

  constructor(tables: PaymentTables, seed: number) {
    this.#tables = tables;
    this.#mischief = new Mischief(seed);
    // One for each order that comes later; all go away with their timers.
    setMaxListeners(0, this.#closing.signal);
  }

  async load(): Promise<void> {
    for (const { role, payment } of await this.#tables.roles())
      this.#roles.set(payment.order_no, { role, payment });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#pending);
  }

  async write(call: Call): Promise<Answer> {
    this.#lastMinute.push(call.arrivedAt);
    if (this.#calls++ === 0) this.#sendLateCalls();
    const key = call.headers['idempotency-key'];
    const { answer, outcome, token } = await this.#perform(call, typeof key === 'string' ? key : '');
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
    await this.#tables.arrived({
      at: call.arrivedAt,
      orderNo: memberText(call.body, 'order_no'),
      operation: memberText(call.body, 'operation'),
      key: typeof key === 'string' ? key : null,
      outcome,
      token: token ?? null,
    });
    return answer;
  }

  async #perform(call: Call, key: string): Promise<{ answer: Answer; outcome: string; token?: string }> {
    let effect: Effect;
    try {
      effect = effectOf(call.body, key);
    } catch (error) {
      if (!(error instanceof BadRequest)) throw error;
      return {
        answer: { status: 400, body: { code: 'BAD_REQUEST', message: error.message } },
        outcome: 'malformed',
      };
    }
    const role = this.#roles.get(effect.order_no)?.role;
    const mishap = this.#mischief.decide(effect.order_no, call.arrivedAt, role === undefined);
    if (mishap === 'error') {
      return {
        answer: { status: 500, body: { code: 'ERROR', message: 'please try again' } },
        outcome: 'error',
      };
    }
    if (role === 'refuse') {
      const token = randomUUID();
      const message = `signature does not match, request ${token}`;
      return {
        answer: { status: 200, body: { code: 'SIGN_ERROR', message, token } },
        outcome: 'refused',
        token,
      };
    }
    if (role === 'swallow') {
      return { answer: { status: 200, body: success(effect.order_no) }, outcome: 'swallowed' };
    }
    if (role === 'pending') return this.#accept(effect);
    const { repeated, response } = await this.#tables.apply(effect, success(effect.order_no), 'replay');
    if (repeated) return { answer: { status: 200, body: response }, outcome: 'repeated' };
    return mishap === 'slow'
      ? { answer: { status: 200, body: response, afterMs: SLOW_ANSWER_MS }, outcome: 'slow' }
      : { answer: { status: 200, body: response }, outcome: 'applied' };
  }

  async #accept(effect: Effect): Promise<{ answer: Answer; outcome: string }> {
    const pending = { code: 'PENDING', order_no: effect.order_no, message: 'accepted, not booked yet' };
    const { repeated, response } = await this.#tables.remember(effect.idempotency_key, pending);
    if (!repeated) this.#later(PENDING_MS, () => this.#tables.book(effect, 'replay'));
    return { answer: { status: 200, body: response }, outcome: repeated ? 'repeated' : 'pending' };
  }

  async lookup(call: Call): Promise<Answer> {
    const keys =
      typeof call.body === 'object' && call.body !== null ? Reflect.get(call.body, 'keys') : undefined;
    if (!Array.isArray(keys)) throw new BadRequest('"keys" is missing; send {"keys": ["ORD..."]}');
    const orders = keys.map(String);
    const items = await this.#tables.lookup(orders);
    for (const order of orders) this.#expectInFlight(order);
    return { status: 200, body: { items } };
  }

  async list(call: Call): Promise<Answer> {
    const [from, to] = [call.query.get('from'), call.query.get('to')];
    if (!from || !to) throw new BadRequest('"from" and "to" are missing');
    const page = await this.#tables.page({ from, to, cursor: call.query.get('cursor'), size: PAGE });
    return { status: 200, body: page };
  }

  stats(now: number): GatewayStats {
    this.#lastMinute = this.#lastMinute.filter((at) => at > now - 60_000);
    return {
      calls: this.#calls,
      outcomes: Object.fromEntries(this.#outcomes),
      inLastMinute: this.#lastMinute.length,
    };
  }

  /**
   * The two seconds begin when somebody first asks for the order, not when the shop wrote it: on a slow machine as
   * on a fast one it is missing in the first look and there in the second.
   */
  #expectInFlight(orderNo: string): void {
    const known = this.#roles.get(orderNo);
    if (known?.role !== 'in-flight' || this.#expected.has(orderNo)) return;
    this.#expected.add(orderNo);
    this.#later(IN_FLIGHT_MS, () => this.#arriveByItself(known.payment));
  }

  #sendLateCalls(): void {
    const late = [...this.#roles.values()].filter(({ role }) => role === 'late');
    this.#later(LATE_MS, async () => {
      for (const { payment } of late) await this.#arriveByItself(payment);
    });
  }

  async #arriveByItself(payment: Effect): Promise<void> {
    await this.#tables.apply(payment, success(payment.order_no), 'original');
  }

  #later(ms: number, work: () => Promise<void>): void {
    const done = (async () => {
      try {
        await sleep(ms, undefined, { signal: this.#closing.signal });
      } catch {
        return; // closing
      }
      try {
        await work();
      } catch (error) {
        console.error(error);
      }
    })();
    this.#pending.add(done);
    void done.finally(() => this.#pending.delete(done));
  }
}

function effectOf(body: unknown, key: string): Effect {
  if (key === '') throw new BadRequest('the header Idempotency-Key is missing');
  return {
    order_no: textOf(body, 'order_no'),
    type: textOf(body, 'type'),
    status: textOf(body, 'status'),
    amount: textOf(body, 'amount'),
    operation: textOf(body, 'operation'),
    idempotency_key: key,
  };
}

function memberText(body: unknown, member: string): string | null {
  const value = typeof body === 'object' && body !== null ? Reflect.get(body, member) : undefined;
  return typeof value === 'string' ? value : null;
}

function success(orderNo: string): Record<string, string> {
  return { code: 'SUCCESS', order_no: orderNo };
}
