import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createDatabase } from './database.ts';
import { startServer, type TestServer } from './http-server.ts';

/** A row of the source. Its amount is also what the downstream should hold. */
export interface Order {
  readonly no: string;
  readonly amount?: string;
  readonly traceId?: string;
}

/** A database with the source's `orders` and the downstream's `bookings`. */
export interface OrdersDatabase {
  readonly url: string;
  readonly pool: pg.Pool;
  /** Orders of this moment. */
  place(orders: readonly Order[]): Promise<void>;
  /** Bookings that the downstream holds already. */
  book(orders: readonly Order[]): Promise<void>;
  /** How often each order was booked. */
  effects(): Promise<ReadonlyMap<string, number>>;
  drop(): Promise<void>;
}

export async function createOrders(): Promise<OrdersDatabase> {
  const database = await createDatabase();
  const pool = new pg.Pool({ connectionString: database.url, max: 8 });
  await pool.query(`
    create table orders (order_no text primary key, amount numeric(12, 2) not null, trace_id text,
      updated_at timestamptz not null default clock_timestamp() - interval '1 minute');
    create index on orders (updated_at);
    create table bookings (id bigint generated always as identity primary key, order_no text not null,
      amount numeric(12, 2) not null, key text, booked_at timestamptz not null default clock_timestamp() - interval '1 minute');
    create index on bookings (order_no);
    create index on bookings (booked_at);
    create table seen_key (key text primary key);`);
  const columns = (orders: readonly Order[]) => [
    orders.map((order) => order.no),
    orders.map((order) => order.amount ?? '12.50'),
  ];
  return {
    url: database.url,
    pool,
    async place(orders) {
      await pool.query(
        'insert into orders (order_no, amount, trace_id) select * from unnest($1::text[], $2::numeric[], $3::text[])',
        [...columns(orders), orders.map((order) => order.traceId ?? null)],
      );
    },
    async book(orders) {
      await pool.query(
        'insert into bookings (order_no, amount) select * from unnest($1::text[], $2::numeric[])',
        columns(orders),
      );
    },
    async effects() {
      const { rows } = await pool.query<{ order_no: string; n: number }>(
        'select order_no, count(*)::int as n from bookings group by order_no',
      );
      return new Map(rows.map((row) => [row.order_no, row.n]));
    },
    async drop() {
      await pool.end();
      await database.drop();
    },
  };
}

/** `count` orders named `A-0001` and on. */
export function orders(prefix: string, count: number): Order[] {
  return Array.from({ length: count }, (_, index) => ({
    no: `${prefix}-${String(index + 1).padStart(5, '0')}`,
  }));
}

/**
 * What becomes of a booking call: `book` does it, `late` does it and answers after `afterMs`, `cut` does it and cuts
 * the connection, an answer is given without doing anything.
 */
export type Reaction =
  | { readonly do: 'book' }
  | { readonly do: 'late'; readonly afterMs: number }
  | { readonly do: 'cut' }
  | { readonly do: 'answer'; readonly status: number; readonly body: unknown };

const BOOK: Reaction = { do: 'book' };

export interface BookingCall {
  readonly no: string;
  /** 1 for the first call about this order. */
  readonly nth: number;
  readonly headers: IncomingMessage['headers'];
}

export interface BookingsApi {
  readonly url: string;
  readonly server: TestServer;
  close(): Promise<void>;
}

export interface BookingsOptions {
  /** A repeated Idempotency-Key books nothing more. */
  readonly dedupes: boolean;
  readonly react?: (call: BookingCall) => Reaction;
  /** Asked first about every request, reads too; false answers 503. `at` is the monotonic time of its arrival. */
  readonly admit?: (request: IncomingMessage, at: number) => boolean;
}

/** The downstream as an HTTP server: `POST /bookings`, `POST /bookings/lookup`, `GET /bookings?from&to`. */
export async function startBookings(pool: pg.Pool, options: BookingsOptions): Promise<BookingsApi> {
  const calls = new Map<string, number>();
  const { admit = () => true, react = () => BOOK } = options;

  const book = async (no: string, amount: string, key: string): Promise<void> => {
    if (options.dedupes) {
      const fresh = await pool.query('insert into seen_key values ($1) on conflict do nothing', [key]);
      if (fresh.rowCount === 0) return;
    }
    await pool.query('insert into bookings (order_no, amount, key) values ($1, $2, $3)', [no, amount, key]);
  };

  const write = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { order_no: no, amount } = await bodyOf(request);
    const nth = (calls.get(no) ?? 0) + 1;
    calls.set(no, nth);
    const reaction = react({ no, nth, headers: request.headers });
    if (reaction.do === 'answer') return answer(response, reaction.status, reaction.body);
    await book(no, amount, String(request.headers['idempotency-key']));
    if (reaction.do === 'cut') response.socket?.destroy();
    if (reaction.do === 'cut') return;
    if (reaction.do === 'late') await sleep(reaction.afterMs);
    answer(response, 200, { code: 'BOOKED' });
  };

  const read = async (response: ServerResponse, where: string, values: unknown[]): Promise<void> => {
    const { rows } = await pool.query(
      `select order_no, amount::text, to_char(booked_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
         from bookings where ${where} order by order_no collate "C", id`,
      values,
    );
    answer(response, 200, { items: rows });
  };

  const server = await startServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://bookings');
    const handled = !admit(request, performance.now())
      ? Promise.resolve(answer(response, 503, { code: 'OVERLOADED' }))
      : url.pathname === '/bookings/lookup'
        ? bodyOf(request).then(({ keys }) => read(response, 'order_no = any($1::text[])', [keys]))
        : request.method === 'POST'
          ? write(request, response)
          : read(response, 'booked_at >= $1::timestamptz and booked_at < $2::timestamptz', [
              url.searchParams.get('from'),
              url.searchParams.get('to'),
            ]);
    handled.catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  return { url: server.url, server, close: () => server.close() };
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  if (response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

// biome-ignore lint/suspicious/noExplicitAny: the body of a request of a test
async function bodyOf(request: IncomingMessage): Promise<any> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}
