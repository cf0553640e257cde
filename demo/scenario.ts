import { type Random, randomFrom } from './random.ts';

/** A row of the shop's `order_tasks`: what the shop believes it has told the gateway. */
export interface Task {
  readonly taskId: number;
  readonly orderNo: string;
  readonly type: string;
  readonly status: string;
  readonly amount: string;
  /** The key that the original call to the gateway carried. */
  readonly idempotencyKey: string;
  readonly finishedAt: Date;
  readonly traceId: string;
}

/** A row of the gateway's `payments`. */
export interface Payment {
  readonly orderNo: string;
  readonly type: string;
  readonly status: string;
  readonly amount: string;
  readonly idempotencyKey: string;
  readonly updatedAt: Date;
}

/**
 * What the gateway does with an order out of the ordinary:
 * `refuse` answers a signature error, `swallow` says SUCCESS and writes nothing, `pending` says PENDING and writes
 * two seconds later, `late` is the original call arriving by itself, `in-flight` is one that is still on its way.
 */
export type Role = 'refuse' | 'swallow' | 'pending' | 'late' | 'in-flight';

export interface Shipment {
  readonly shipmentNo: string;
  readonly orderNo: string;
  readonly sku: string;
  readonly quantity: number;
  readonly shippedAt: Date;
}

/** Two systems that an outage has driven apart, and what a perfect reconciliation would find and do. */
export interface Scenario {
  readonly tasks: readonly Task[];
  /** Written into the shop only when the run starts. */
  readonly inFlight: readonly Task[];
  readonly payments: readonly Payment[];
  readonly roles: ReadonlyMap<string, Role>;
  readonly shipments: readonly Shipment[];
  /** Shipment numbers that never reached the warehouse. */
  readonly lostShipments: readonly string[];
  /** Of the lost ones, those whose repeated call is answered too late, after the work was done. */
  readonly slowShipments: readonly string[];
  readonly expected: Expected;
}

export interface Expected {
  readonly payments: { source: number; missing: number; mismatched: number; extra: number; healed: number };
  readonly warehouse: { source: number; missing: number };
  /** Order numbers by what has to become of them; each list is sorted. */
  readonly orders: {
    readonly created: readonly string[];
    readonly corrected: readonly string[];
    readonly fixedAtShop: readonly string[];
    readonly refused: readonly string[];
    readonly swallowed: readonly string[];
    readonly late: readonly string[];
    readonly inFlight: readonly string[];
    readonly extra: readonly string[];
  };
}

const TASKS = 20_000;
const IN_FLIGHT = 40;
const LATE = 20;
const MISSING = 600;
const SHIPMENTS = 2_000;
/** Records lie between these ages. The rest of the three hours is room for the start of the run. */
const OLDEST_MS = 175 * 60_000;
const YOUNGEST_MS = 60_000;
/** The outage, as shares of the task list: most calls of this stretch got through, some never did. */
const OUTAGE = [0.4, 0.7] as const;

/** `now` is the shop database's clock; everything else comes from the seed. */
export function makeScenario(seed: number, now: Date): Scenario {
  const random = randomFrom(seed);
  const all = makeTasks(random, now);
  const tasks = all.slice(0, TASKS - IN_FLIGHT);
  const inFlight = all.slice(TASKS - IN_FLIGHT);
  // The newest orders come last in the replay, so that their original call can still win the race.
  const late = tasks.slice(-LATE);
  const outage = tasks.slice(Math.floor(TASKS * OUTAGE[0]), Math.floor(TASKS * OUTAGE[1]));
  const lost = random.sample(outage, MISSING - LATE);
  const refused = random.sample(lost, 15);
  const swallowed = random.sample(without(lost, refused), 10);
  const pending = random.sample(without(lost, [...refused, ...swallowed]), 12);
  const present = without(tasks, [...lost, ...late]);
  const odd = random.sample(present, 60);
  const stale = random.sample(odd, 30);
  const wrong = without(odd, stale);
  const extra = random.sample(present, 5).map((task) => extraPayment(task, random));

  const staleNumbers = new Set(numbers(stale));
  const wrongAt = new Map(wrong.map((task, index) => [task.orderNo, index]));
  return {
    tasks: tasks.map((task) => shopView(task, staleNumbers)),
    inFlight,
    payments: [...present.map((task) => gatewayView(task, wrongAt.get(task.orderNo), random)), ...extra],
    roles: new Map([
      ...roles(refused, 'refuse'),
      ...roles(swallowed, 'swallow'),
      ...roles(pending, 'pending'),
      ...roles(late, 'late'),
      ...roles(inFlight, 'in-flight'),
    ]),
    ...makeShipments(random, now, present),
    expected: {
      payments: { source: TASKS, missing: MISSING, mismatched: 60, extra: 5, healed: IN_FLIGHT },
      warehouse: { source: SHIPMENTS, missing: 50 },
      orders: {
        created: numbers(without(lost, [...refused, ...swallowed])),
        corrected: numbers(wrong),
        fixedAtShop: numbers(stale),
        refused: numbers(refused),
        swallowed: numbers(swallowed),
        late: numbers(late),
        inFlight: numbers(inFlight),
        extra: extra.map((payment) => payment.orderNo).sort(),
      },
    },
  };
}

function makeTasks(random: Random, now: Date): Task[] {
  const firstNumber = 10_000_000 + random.int(0, 4_000_000) * 10;
  const firstId = 7_000_000 + random.int(0, 1_000_000);
  const step = (OLDEST_MS - YOUNGEST_MS) / TASKS;
  return Array.from({ length: TASKS }, (_, index) => {
    // Even numbers are the shop's, so that an odd one is surely unknown to it.
    const orderNo = `ORD${firstNumber + index * 2}`;
    return {
      taskId: firstId + index,
      orderNo,
      type: random.next() < 0.9 ? 'payment' : 'refund',
      status: 'SUCCESS',
      amount: cents(random.int(100, 500_000)),
      idempotencyKey: `shop-${orderNo}-${random.hex(8)}`,
      finishedAt: new Date(now.getTime() - OLDEST_MS + Math.floor((index + random.next()) * step)),
      traceId: random.hex(32),
    };
  });
}

/** The shop never heard of the end of a stale order, so it still waits. */
function shopView(task: Task, stale: ReadonlySet<string>): Task {
  return stale.has(task.orderNo) ? { ...task, status: 'PENDING' } : task;
}

/** `wrongIndex` is given for the orders that the gateway has wrong: every other one in amount, the rest in status. */
function gatewayView(task: Task, wrongIndex: number | undefined, random: Random): Payment {
  const payment: Payment = {
    orderNo: task.orderNo,
    type: task.type,
    status: task.status,
    amount: task.amount,
    idempotencyKey: task.idempotencyKey,
    updatedAt: new Date(task.finishedAt.getTime() + random.int(5, 400)),
  };
  if (wrongIndex === undefined) return payment;
  return wrongIndex % 2 === 0
    ? { ...payment, amount: cents(Math.round(Number(task.amount) * 100) + random.int(1, 5_000)) }
    : { ...payment, status: 'FAILED' };
}

function extraPayment(near: Task, random: Random): Payment {
  const orderNo = `ORD${Number(near.orderNo.slice(3)) + 1}`;
  return {
    orderNo,
    type: 'payment',
    status: 'SUCCESS',
    amount: cents(random.int(100, 500_000)),
    idempotencyKey: `unknown-${random.hex(8)}`,
    updatedAt: near.finishedAt,
  };
}

type Shipments = Pick<Scenario, 'shipments' | 'lostShipments' | 'slowShipments'>;

function makeShipments(random: Random, now: Date, orders: readonly Task[]): Shipments {
  const shipped = random.sample(orders, SHIPMENTS);
  const shipments = shipped.map((task, index) => ({
    shipmentNo: `SHP${1_000_000 + random.int(0, 4) + index * 5}`,
    orderNo: task.orderNo,
    sku: `SKU-${random.int(100, 999)}`,
    quantity: random.int(1, 9),
    shippedAt: new Date(Math.min(task.finishedAt.getTime() + random.int(0, 20_000), now.getTime() - 30_000)),
  }));
  const lost = random.sample(shipments, 50).map((shipment) => shipment.shipmentNo);
  return { shipments, lostShipments: lost, slowShipments: random.sample(lost, 3) };
}

function cents(amount: number): string {
  return `${Math.floor(amount / 100)}.${String(amount % 100).padStart(2, '0')}`;
}

function numbers(tasks: readonly Task[]): string[] {
  return tasks.map((task) => task.orderNo).sort();
}

function roles(tasks: readonly Task[], role: Role): [string, Role][] {
  return tasks.map((task) => [task.orderNo, role]);
}

function without(tasks: readonly Task[], taken: readonly Task[]): Task[] {
  const gone = new Set(taken);
  return tasks.filter((task) => !gone.has(task));
}
