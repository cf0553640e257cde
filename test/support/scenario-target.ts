import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startServer } from './http-server.ts';

/**
 * What goes wrong with one order. `error`: a 500 before anything is done. `drop`: the work is done and the connection
 * cut. `hang`: the work is done and no answer comes. `pending`: accepted, booked a little later. These happen once;
 * `refuse` happens each time.
 */
export type Fault = 'error' | 'drop' | 'hang' | 'pending' | 'refuse';

/** A call that the test holds: `order` arrived, and its work was or was not yet done. */
export type HeldAt = 'before-work' | 'after-work';

export interface ScenarioTarget {
  readonly url: string;
  /** Writes that arrived so far. */
  arrivals(): number;
  /** Reads (lookups and lists) that arrived so far. */
  reads(): number;
  /** Resolves with the order of the next write when it is at this point. It is then worked off and never answered. */
  holdNext(at: HeldAt): Promise<string>;
  close(): Promise<void>;
}

const BOOKED_LATER_MS = 600;
/** A write held before its work goes on after this: the server does not know that its caller is gone. */
const HELD_MS = 100;
const ITEM = `order_no, status, amount::text as amount, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`;

interface Write {
  readonly orderNo: string;
  readonly status: string;
  readonly amount: string;
  readonly key: string;
}

/** Tables of one target in a schema of its own: what it was asked, what it did, and what it holds now. */
export function targetTables(schema: string): string {
  return `
    create schema ${schema};
    create table ${schema}.arrival (id bigint generated always as identity, at timestamptz not null default clock_timestamp(),
      order_no text not null, key text not null);
    create table ${schema}.effect (id bigint generated always as identity, at timestamptz not null default clock_timestamp(),
      order_no text not null, key text not null);
    create table ${schema}.seen_key (key text primary key);
    create table ${schema}.payment (order_no text primary key, status text not null, amount numeric not null,
      at timestamptz not null);`;
}

/**
 * A downstream that lives in the test's own process, so that it survives the workers. With `dedupes` a repeated
 * Idempotency-Key gets its first answer and nothing else; without, each write call adds an effect.
 */
export async function startScenarioTarget(options: {
  readonly databaseUrl: string;
  readonly schema: string;
  readonly dedupes: boolean;
  readonly faults: ReadonlyMap<string, Fault>;
}): Promise<ScenarioTarget> {
  const pool = new pg.Pool({ connectionString: options.databaseUrl, max: 6 });
  const target = new Target(pool, options);
  const server = await startServer((request, response) => {
    target.handle(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
      target.failed.push(error);
    });
  });
  return {
    url: server.url,
    arrivals: () => target.writes,
    reads: () => target.reads,
    holdNext: (at) => target.holdNext(at),
    async close() {
      await server.close();
      await target.settled();
      await pool.end();
      if (target.failed.length > 0) throw new AggregateError(target.failed, 'the target itself failed');
    },
  };
}

class Target {
  writes = 0;
  reads = 0;
  readonly failed: unknown[] = [];
  readonly #pool: pg.Pool;
  readonly #schema: string;
  readonly #dedupes: boolean;
  readonly #faults: ReadonlyMap<string, Fault>;
  readonly #met = new Set<string>();
  readonly #later = new Set<Promise<void>>();
  #hold: { at: HeldAt; reached: (orderNo: string) => void } | undefined;

  constructor(
    pool: pg.Pool,
    options: { schema: string; dedupes: boolean; faults: ReadonlyMap<string, Fault> },
  ) {
    this.#pool = pool;
    this.#schema = options.schema;
    this.#dedupes = options.dedupes;
    this.#faults = options.faults;
  }

  holdNext(at: HeldAt): Promise<string> {
    return new Promise((reached) => {
      this.#hold = { at, reached };
    });
  }

  async settled(): Promise<void> {
    await Promise.all(this.#later);
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://target');
    if (request.method === 'POST' && url.pathname === '/payments') {
      this.writes += 1;
      await this.#write(writeOf(request, await bodyOf(request)), response);
    } else if (request.method === 'POST' && url.pathname === '/payments/lookup') {
      this.reads += 1;
      const { keys } = await bodyOf(request);
      await this.#items(response, 'order_no = any($1::text[])', [keys]);
    } else if (request.method === 'GET' && url.pathname === '/payments') {
      this.reads += 1;
      const window = [url.searchParams.get('from'), url.searchParams.get('to')];
      await this.#items(response, 'at >= $1::timestamptz and at < $2::timestamptz', window);
    } else {
      response.writeHead(404).end();
    }
  }

  async #items(response: ServerResponse, where: string, values: readonly unknown[]): Promise<void> {
    const { rows } = await this.#pool.query(
      `select ${ITEM} from ${this.#schema}.payment where ${where} order by payment.at, order_no`,
      [...values],
    );
    answer(response, 200, { items: rows });
  }

  async #write(write: Write, response: ServerResponse): Promise<void> {
    await this.#pool.query(`insert into ${this.#schema}.arrival (order_no, key) values ($1, $2)`, [
      write.orderNo,
      write.key,
    ]);
    const fault = this.#faultOf(write.orderNo);
    if (fault === 'error') return answer(response, 500, { code: 'ERROR' });
    if (fault === 'refuse') return answer(response, 422, { code: 'SIGN_ERROR' });
    const hold = this.#hold;
    this.#hold = undefined;
    if (hold?.at === 'before-work') {
      hold.reached(write.orderNo);
      await sleep(HELD_MS);
    }
    if (fault === 'pending') {
      await this.#acceptOnly(write);
      return answer(response, 200, { code: 'PENDING' });
    }
    await this.#work(write);
    if (hold?.at === 'after-work') hold.reached(write.orderNo);
    if (hold !== undefined || fault === 'hang') return;
    if (fault === 'drop') response.socket?.destroy();
    else answer(response, 200, { code: 'SUCCESS' });
  }

  /** Only the first call of an order meets its fault, except for what is refused for good. */
  #faultOf(orderNo: string): Fault | undefined {
    const fault = this.#faults.get(orderNo);
    if (fault === undefined || fault === 'refuse') return fault;
    if (this.#met.has(orderNo)) return undefined;
    this.#met.add(orderNo);
    return fault;
  }

  async #acceptOnly(write: Write): Promise<void> {
    if (this.#dedupes && !(await this.#isNewKey(this.#pool, write.key))) return;
    const booking = sleep(BOOKED_LATER_MS)
      .then(() => this.#transaction((client) => this.#book(client, write)))
      .catch((error: unknown) => {
        this.failed.push(error);
      })
      .finally(() => this.#later.delete(booking));
    this.#later.add(booking);
  }

  /** The effect and its key in one transaction: of two calls with one key exactly one has the effect. */
  async #work(write: Write): Promise<void> {
    await this.#transaction(async (client) => {
      if (this.#dedupes && !(await this.#isNewKey(client, write.key))) return;
      await this.#book(client, write);
    });
  }

  async #isNewKey(db: pg.Pool | pg.PoolClient, key: string): Promise<boolean> {
    const { rowCount } = await db.query(
      `insert into ${this.#schema}.seen_key (key) values ($1) on conflict do nothing`,
      [key],
    );
    return rowCount === 1;
  }

  async #book(client: pg.PoolClient, write: Write): Promise<void> {
    await client.query(`insert into ${this.#schema}.effect (order_no, key) values ($1, $2)`, [
      write.orderNo,
      write.key,
    ]);
    await client.query(
      `insert into ${this.#schema}.payment (order_no, status, amount, at) values ($1, $2, $3, clock_timestamp())
       on conflict (order_no) do update set status = excluded.status, amount = excluded.amount, at = excluded.at`,
      [write.orderNo, write.status, write.amount],
    );
  }

  async #transaction(work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await client.query('begin');
      await work(client);
      await client.query('commit');
    } catch (error) {
      await client.query('rollback');
      throw error;
    } finally {
      client.release();
    }
  }
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}

function writeOf(request: IncomingMessage, body: Record<string, unknown>): Write {
  const { 'idempotency-key': key = '' } = request.headers;
  return {
    orderNo: String(body['order_no']),
    status: String(body['status']),
    amount: String(body['amount']),
    key: String(key),
  };
}
