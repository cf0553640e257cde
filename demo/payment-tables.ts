import type pg from 'pg';
import { BadRequest } from './json-server.ts';
import type { Role } from './scenario.ts';

/** A write call, as far as it changes anything. */
export interface Effect {
  readonly order_no: string;
  readonly type: string;
  readonly status: string;
  readonly amount: string;
  readonly operation: string;
  readonly idempotency_key: string;
}

export interface ArrivalRow {
  readonly at: number;
  readonly orderNo: string | null;
  readonly operation: string | null;
  readonly key: string | null;
  readonly outcome: string;
  readonly token: string | null;
}

type Origin = 'replay' | 'original';
type Response = Readonly<Record<string, string>>;

/** UTC with microseconds, so that a cursor loses nothing. */
const UPDATED_AT = `to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
const ITEM = `order_no, type, status, amount::text as amount, ${UPDATED_AT} as updated_at`;

/** The gateway's own database. */
export class PaymentTables {
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  async roles(): Promise<{ role: Role; payment: Effect }[]> {
    const { rows } = await this.#pool.query<{ role: Role; payment: Omit<Effect, 'operation'> }>(
      'select role, payment from roles',
    );
    return rows.map(({ role, payment }) => ({ role, payment: { ...payment, operation: 'create' } }));
  }

  async arrived(arrival: ArrivalRow): Promise<void> {
    await this.#pool.query(
      `insert into arrivals (at, order_no, operation, idempotency_key, outcome, token)
       values (to_timestamp($1::double precision / 1000), $2, $3, $4, $5, $6)`,
      [arrival.at, arrival.orderNo, arrival.operation, arrival.key, arrival.outcome, arrival.token],
    );
  }

  /** The effect and its key in one transaction. A key that was seen before gets its first answer and nothing else. */
  async apply(
    effect: Effect,
    response: Response,
    origin: Origin,
  ): Promise<{ repeated: boolean; response: Response }> {
    return this.#transaction(async (client) => {
      const known = await claimKey(client, effect.idempotency_key, response);
      if (known) return { repeated: true, response: known };
      await bookOn(client, effect, origin);
      return { repeated: false, response };
    });
  }

  /** Remembers a key without an effect, for a call that is booked later. */
  async remember(key: string, response: Response): Promise<{ repeated: boolean; response: Response }> {
    return this.#transaction(async (client) => {
      const known = await claimKey(client, key, response);
      return known ? { repeated: true, response: known } : { repeated: false, response };
    });
  }

  async book(effect: Effect, origin: Origin): Promise<void> {
    await this.#transaction((client) => bookOn(client, effect, origin));
  }

  async lookup(orders: readonly string[]): Promise<unknown[]> {
    const { rows } = await this.#pool.query(`select ${ITEM} from payments where order_no = any($1::text[])`, [
      orders,
    ]);
    return rows;
  }

  /** One page of a half-open window, by time and then order number. `next` is null on the last page. */
  async page(request: { from: string; to: string; cursor: string | null; size: number }): Promise<{
    items: unknown[];
    next: string | null;
  }> {
    const after = request.cursor === null ? null : readCursor(request.cursor);
    const { rows } = await this.#pool.query<{ order_no: string; updated_at: string }>(
      `select ${ITEM} from payments
        where updated_at >= $1::timestamptz and updated_at < $2::timestamptz
          and ($3::timestamptz is null or (updated_at, order_no) > ($3::timestamptz, $4::text))
        order by payments.updated_at, order_no limit $5`,
      [request.from, request.to, after?.[0] ?? null, after?.[1] ?? null, request.size],
    );
    const last = rows.at(-1);
    const next = rows.length === request.size && last ? writeCursor([last.updated_at, last.order_no]) : null;
    return { items: rows, next };
  }

  async #transaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    try {
      await client.query('begin');
      const result = await work(client);
      await client.query('commit');
      return result;
    } catch (error) {
      await client.query('rollback');
      throw error;
    } finally {
      client.release();
    }
  }
}

/**
 * Null when the key is new. A second call with the same key waits here until the first one has committed, so of two
 * at once exactly one has the effect.
 */
async function claimKey(client: pg.PoolClient, key: string, response: Response): Promise<Response | null> {
  const { rowCount } = await client.query(
    'insert into idempotency (key, response) values ($1, $2) on conflict (key) do nothing',
    [key, JSON.stringify(response)],
  );
  if (rowCount === 1) return null;
  const { rows } = await client.query<{ response: Response }>(
    'select response from idempotency where key = $1',
    [key],
  );
  return rows[0]?.response ?? null;
}

async function bookOn(client: pg.PoolClient, effect: Effect, origin: Origin): Promise<void> {
  await client.query(
    `insert into payments (order_no, type, status, amount, idempotency_key) values ($1, $2, $3, $4, $5)
     on conflict (order_no) do update set type = excluded.type, status = excluded.status,
       amount = excluded.amount, idempotency_key = excluded.idempotency_key, updated_at = clock_timestamp()`,
    [effect.order_no, effect.type, effect.status, effect.amount, effect.idempotency_key],
  );
  await client.query(
    'insert into effects (order_no, operation, idempotency_key, origin) values ($1, $2, $3, $4)',
    [effect.order_no, effect.operation, effect.idempotency_key, origin],
  );
}

function writeCursor(position: readonly [string, string]): string {
  return Buffer.from(position.join('\n')).toString('base64url');
}

function readCursor(cursor: string): readonly [string, string] {
  const [updatedAt, orderNo] = Buffer.from(cursor, 'base64url').toString('utf8').split('\n');
  if (!updatedAt || !orderNo) throw new BadRequest(`"${cursor}" is no cursor of this list`);
  return [updatedAt, orderNo];
}
