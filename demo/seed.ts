import pg from 'pg';
import type { Payment, Scenario, Task } from './scenario.ts';

/** Addresses of the three systems' databases. They are empty before `seed`. */
export interface Databases {
  readonly shop: string;
  readonly gateway: string;
  readonly warehouse: string;
}

const SHOP = `
create table order_tasks (
  order_no        text primary key,
  task_id         bigint not null unique,
  type            text not null,
  status          text not null,
  amount          numeric(18,2) not null,
  idempotency_key text not null,
  finished_at     timestamptz not null,
  trace_id        text not null
);
create index on order_tasks (finished_at, order_no);
create table shipments (
  shipment_no text primary key,
  order_no    text not null,
  sku         text not null,
  quantity    integer not null,
  shipped_at  timestamptz not null
);
create index on shipments (shipped_at, shipment_no);

-- Every change of a task after the seed, for the checker.
create table task_changes (order_no text not null, at timestamptz not null default clock_timestamp());
create function note_change() returns trigger language plpgsql as $$
begin
  insert into task_changes (order_no) values (new.order_no);
  return null;
end $$;
create trigger note_change after update on order_tasks for each row execute function note_change();
`;

const GATEWAY = `
create table payments (
  order_no        text primary key,
  type            text not null,
  status          text not null,
  -- Two digits more than the shop keeps: 12.5000 and 12.50 are the same amount.
  amount          numeric(18,4) not null,
  idempotency_key text not null,
  updated_at      timestamptz not null default clock_timestamp()
);
create index on payments (updated_at, order_no);
-- The first answer to each key. A repeated key gets it again, and nothing else happens.
create table idempotency (
  key      text primary key,
  response jsonb not null
);
-- One row per write call, stamped when the call arrived.
create table arrivals (
  at              timestamptz not null,
  order_no        text,
  operation       text,
  idempotency_key text,
  outcome         text not null,
  token           text
);
-- One row per effect. origin: a replayed call, or an original one that came late.
create table effects (
  order_no        text not null,
  operation       text not null,
  idempotency_key text not null,
  origin          text not null check (origin in ('replay', 'original')),
  at              timestamptz not null default clock_timestamp()
);
-- Orders that this gateway treats out of the ordinary (scenario.ts).
create table roles (
  order_no text primary key,
  role     text not null,
  payment  jsonb not null
);
`;

const WAREHOUSE = `
-- No unique shipment_no: this warehouse books whatever it is told, as often as it is told.
create table goods_out (
  id          bigint generated always as identity primary key,
  shipment_no text not null,
  sku         text not null,
  quantity    integer not null,
  received_at timestamptz not null default clock_timestamp()
);
create index on goods_out (shipment_no);
create index on goods_out (received_at, shipment_no);
create table arrivals (at timestamptz not null, shipment_no text, outcome text not null);
create table slow (shipment_no text primary key);
`;

/** Creates the tables of the three systems and fills them. About a second. */
export async function seed(databases: Databases, scenario: Scenario): Promise<void> {
  await Promise.all([
    withClient(databases.shop, (client) => seedShop(client, scenario)),
    withClient(databases.gateway, (client) => seedGateway(client, scenario)),
    withClient(databases.warehouse, (client) => seedWarehouse(client, scenario)),
  ]);
}

/** The orders that finished a moment ago: the shop has them, and their calls to the gateway are still on the way. */
export async function writeInFlight(shop: string, scenario: Scenario): Promise<void> {
  await withClient(shop, async (client) => {
    const { rows } = await client.query<{ at: Date }>(
      `select clock_timestamp() - interval '3 seconds' as at`,
    );
    const at = rows[0]?.at ?? new Date();
    await insertTasks(
      client,
      scenario.inFlight.map((task) => ({ ...task, finishedAt: at })),
    );
  });
}

/** The clock that the seeded times are counted back from: the database's, not this process's. */
export async function databaseNow(url: string): Promise<Date> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ now: Date }>('select clock_timestamp() as now');
    const now = rows[0]?.now;
    if (!now) throw new Error('the database did not say what time it is');
    return now;
  });
}

async function seedShop(client: pg.Client, scenario: Scenario): Promise<void> {
  await client.query(SHOP);
  await insertTasks(client, scenario.tasks);
  const { shipments } = scenario;
  await client.query(
    `insert into shipments (shipment_no, order_no, sku, quantity, shipped_at)
     select * from unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::timestamptz[])`,
    [
      shipments.map((shipment) => shipment.shipmentNo),
      shipments.map((shipment) => shipment.orderNo),
      shipments.map((shipment) => shipment.sku),
      shipments.map((shipment) => shipment.quantity),
      shipments.map((shipment) => shipment.shippedAt.toISOString()),
    ],
  );
  await client.query('analyze');
}

async function insertTasks(client: pg.Client, tasks: readonly Task[]): Promise<void> {
  await client.query(
    `insert into order_tasks (order_no, task_id, type, status, amount, idempotency_key, finished_at, trace_id)
     select * from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::numeric[], $6::text[],
                          $7::timestamptz[], $8::text[])`,
    [
      tasks.map((task) => task.orderNo),
      tasks.map((task) => task.taskId),
      tasks.map((task) => task.type),
      tasks.map((task) => task.status),
      tasks.map((task) => task.amount),
      tasks.map((task) => task.idempotencyKey),
      tasks.map((task) => task.finishedAt.toISOString()),
      tasks.map((task) => task.traceId),
    ],
  );
}

async function seedGateway(client: pg.Client, scenario: Scenario): Promise<void> {
  await client.query(GATEWAY);
  await insertPayments(client, scenario.payments);
  // The original calls had keys as well, so the gateway knows them.
  await client.query(
    `insert into idempotency (key, response)
     select idempotency_key, jsonb_build_object('code', 'SUCCESS', 'order_no', order_no) from payments`,
  );
  const special = [...scenario.tasks, ...scenario.inFlight].filter((task) =>
    scenario.roles.has(task.orderNo),
  );
  await client.query(
    `insert into roles (order_no, role, payment) select * from unnest($1::text[], $2::text[], $3::jsonb[])`,
    [
      special.map((task) => task.orderNo),
      special.map((task) => scenario.roles.get(task.orderNo)),
      special.map((task) =>
        JSON.stringify({
          order_no: task.orderNo,
          type: task.type,
          status: task.status,
          amount: task.amount,
          idempotency_key: task.idempotencyKey,
        }),
      ),
    ],
  );
  await client.query('analyze');
}

async function insertPayments(client: pg.Client, payments: readonly Payment[]): Promise<void> {
  await client.query(
    `insert into payments (order_no, type, status, amount, idempotency_key, updated_at)
     select * from unnest($1::text[], $2::text[], $3::text[], $4::numeric[], $5::text[], $6::timestamptz[])`,
    [
      payments.map((payment) => payment.orderNo),
      payments.map((payment) => payment.type),
      payments.map((payment) => payment.status),
      payments.map((payment) => payment.amount),
      payments.map((payment) => payment.idempotencyKey),
      payments.map((payment) => payment.updatedAt.toISOString()),
    ],
  );
}

async function seedWarehouse(client: pg.Client, scenario: Scenario): Promise<void> {
  await client.query(WAREHOUSE);
  const lost = new Set(scenario.lostShipments);
  const received = scenario.shipments.filter((shipment) => !lost.has(shipment.shipmentNo));
  await client.query(
    `insert into goods_out (shipment_no, sku, quantity, received_at)
     select shipment_no, sku, quantity, shipped_at + interval '120 milliseconds'
       from unnest($1::text[], $2::text[], $3::int[], $4::timestamptz[]) as s (shipment_no, sku, quantity, shipped_at)`,
    [
      received.map((shipment) => shipment.shipmentNo),
      received.map((shipment) => shipment.sku),
      received.map((shipment) => shipment.quantity),
      received.map((shipment) => shipment.shippedAt.toISOString()),
    ],
  );
  await client.query('insert into slow select unnest($1::text[])', [scenario.slowShipments]);
  await client.query('analyze');
}

/** Runs `work` on a connection of its own. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
