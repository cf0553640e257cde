import type { Databases } from './seed.ts';
import { withClient } from './seed.ts';

/** A write call as the target itself wrote it down. */
export interface Arrival {
  /** Epoch microseconds, which a JavaScript number holds exactly. */
  readonly atMicros: number;
  readonly record: string | null;
  readonly outcome: string;
  readonly token: string | null;
}

/** How often one effect happened, by record and operation. */
export interface EffectCount {
  readonly record: string;
  readonly operation: string;
  readonly times: number;
}

/** What the three systems' own tables say after the run. Nothing here comes from trueup. */
export interface Evidence {
  readonly gateway: { readonly arrivals: readonly Arrival[]; readonly effects: readonly EffectCount[] };
  readonly warehouse: { readonly arrivals: readonly Arrival[]; readonly effects: readonly EffectCount[] };
  readonly shop: { readonly effects: readonly EffectCount[] };
  /** Orders and shipments on which the two systems still do not agree. */
  readonly apart: {
    readonly missingPayments: readonly string[];
    readonly extraPayments: readonly string[];
    readonly differentPayments: readonly string[];
    readonly missingShipments: readonly string[];
    readonly repeatedShipments: readonly string[];
  };
}

const MICROS = '(extract(epoch from at) * 1000000)::bigint::text as at';

export async function readEvidence(databases: Databases): Promise<Evidence> {
  const gateway = await rowsOf<{ at: string; record: string | null; outcome: string; token: string | null }>(
    databases.gateway,
    `select ${MICROS}, order_no as record, outcome, token from arrivals order by arrivals.at`,
  );
  const gatewayEffects = await rowsOf<EffectCount>(
    databases.gateway,
    `select order_no as record, operation, count(*)::int as times from effects
      where origin = 'replay' group by 1, 2 order by 1, 2`,
  );
  const warehouse = await rowsOf<{ at: string; record: string; outcome: string }>(
    databases.warehouse,
    `select ${MICROS}, shipment_no as record, outcome from arrivals order by arrivals.at`,
  );
  // A row of the warehouse is the effect: whatever stands there beyond the seed came through the API.
  const warehouseEffects = await rowsOf<EffectCount>(
    databases.warehouse,
    `select shipment_no as record, 'create' as operation, count(*)::int as times from goods_out
      where shipment_no in (select shipment_no from arrivals) group by 1 order by 1`,
  );
  const shopEffects = await rowsOf<EffectCount>(
    databases.shop,
    `select order_no as record, 'update' as operation, count(*)::int as times from task_changes
      group by 1 order by 1`,
  );
  return {
    gateway: { arrivals: gateway.map(arrival), effects: gatewayEffects },
    warehouse: {
      arrivals: warehouse.map((row) => arrival({ ...row, token: null })),
      effects: warehouseEffects,
    },
    shop: { effects: shopEffects },
    apart: await readApart(databases),
  };
}

function arrival(row: { at: string; record: string | null; outcome: string; token: string | null }): Arrival {
  return { atMicros: Number(row.at), record: row.record, outcome: row.outcome, token: row.token };
}

async function readApart(databases: Databases): Promise<Evidence['apart']> {
  const payment = `order_no as record, type || ' ' || status || ' ' || amount::numeric(18,2) as content`;
  const tasks = await rowsOf<Content>(databases.shop, `select ${payment} from order_tasks`);
  const payments = await rowsOf<Content>(databases.gateway, `select ${payment} from payments`);
  const shipment = `shipment_no as record, sku || ' ' || quantity as content`;
  const shipments = await rowsOf<Content>(databases.shop, `select ${shipment} from shipments`);
  const received = await rowsOf<Content>(databases.warehouse, `select ${shipment} from goods_out`);
  const paid = new Map(payments.map((row) => [row.record, row.content]));
  const known = new Set(tasks.map((row) => row.record));
  const times = new Map<string, number>();
  for (const row of received) times.set(row.record, (times.get(row.record) ?? 0) + 1);
  const records = (rows: readonly Content[]) => rows.map((row) => row.record).sort();
  return {
    missingPayments: records(tasks.filter((row) => !paid.has(row.record))),
    extraPayments: records(payments.filter((row) => !known.has(row.record))),
    differentPayments: records(
      tasks.filter((row) => paid.has(row.record) && paid.get(row.record) !== row.content),
    ),
    missingShipments: records(shipments.filter((row) => !times.has(row.record))),
    repeatedShipments: [...times].filter(([, count]) => count > 1).map(([record]) => record),
  };
}

interface Content {
  record: string;
  content: string;
}

async function rowsOf<Row extends object>(url: string, sql: string): Promise<Row[]> {
  return withClient(url, async (client) => (await client.query<Row>(sql)).rows);
}
