import pg from 'pg';
import { type Answer, type Call, type JsonServer, startJsonServer, textOf } from './json-server.ts';

/** Longer than the client waits. */
const SLOW_ANSWER_MS = 6_000;

/**
 * A warehouse whose API books a row on each call and looks at no key: whoever calls twice ships twice. Three calls
 * are answered too late, after the row was booked.
 */
export async function startWarehouse(databaseUrl: string): Promise<JsonServer> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 8 });
  const { rows } = await pool.query<{ shipment_no: string }>('select shipment_no from slow');
  const slow = new Set(rows.map((row) => row.shipment_no));
  const server = await startJsonServer({ 'POST /shipments': (call) => book(pool, slow, call) });
  return {
    ...server,
    close: async () => {
      await server.close();
      await pool.end();
    },
  };
}

async function book(pool: pg.Pool, slow: Set<string>, call: Call): Promise<Answer> {
  const shipmentNo = textOf(call.body, 'shipment_no');
  // Late once only: a second call of the same shipment is answered, and books it a second time.
  const late = slow.delete(shipmentNo);
  await pool.query(
    `with booked as (insert into goods_out (shipment_no, sku, quantity) values ($1, $2, $3::int))
     insert into arrivals (at, shipment_no, outcome) values (to_timestamp($4::double precision / 1000), $1, $5)`,
    [
      shipmentNo,
      textOf(call.body, 'sku'),
      textOf(call.body, 'quantity'),
      call.arrivedAt,
      late ? 'slow' : 'applied',
    ],
  );
  const body = { code: 'OK', shipment_no: shipmentNo };
  return late ? { status: 201, body, afterMs: SLOW_ANSWER_MS } : { status: 201, body };
}
