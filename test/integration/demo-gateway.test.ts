import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readEvidence } from '../../demo/evidence.ts';
import { startGateway } from '../../demo/gateway.ts';
import type { JsonServer } from '../../demo/json-server.ts';
import { makeScenario, type Scenario, type Task } from '../../demo/scenario.ts';
import { type Databases, databaseNow, seed, withClient, writeInFlight } from '../../demo/seed.ts';
import { startWarehouse } from '../../demo/warehouse.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/wait.ts';

interface Answered {
  status: number;
  body: { code: string; message?: string; token?: string };
}

interface Options {
  key?: string;
  operation?: string;
  signal?: AbortSignal;
}

let created: TestDatabase[];
let databases: Databases;
let scenario: Scenario;
let tasks: ReadonlyMap<string, Task>;
/** Missing orders that the gateway takes like any other. */
let plain: readonly string[];
let gateway: JsonServer;
let warehouse: JsonServer;

beforeAll(async () => {
  created = await Promise.all([createDatabase(), createDatabase(), createDatabase()]);
  const [shop = '', gatewayUrl = '', warehouseUrl = ''] = created.map((database) => database.url);
  databases = { shop, gateway: gatewayUrl, warehouse: warehouseUrl };
  scenario = makeScenario(1, await databaseNow(shop));
  tasks = new Map([...scenario.tasks, ...scenario.inFlight].map((task) => [task.orderNo, task]));
  plain = scenario.expected.orders.created.filter((order) => !scenario.roles.has(order));
  await seed(databases, scenario);
  // With this seed the first late answer comes to about the ninetieth call.
  gateway = await startGateway(databases.gateway, 8);
  warehouse = await startWarehouse(databases.warehouse);
});

afterAll(async () => {
  await gateway?.close();
  await warehouse?.close();
  for (const database of created ?? []) await database.drop();
});

async function post(url: string, body: unknown, options: Options = {}): Promise<Answered> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': options.key ?? '' };
  const { signal = null } = options;
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal });
  return { status: response.status, body: (await response.json()) as Answered['body'] };
}

/** Replays an order until the gateway gives another answer than a 500. */
async function pay(orderNo: string, { key, operation = 'create', signal }: Options = {}): Promise<Answered> {
  const task = tasks.get(orderNo);
  const body = { order_no: orderNo, type: task?.type, status: task?.status, amount: task?.amount, operation };
  const options = { key: key ?? task?.idempotencyKey ?? '', ...(signal && { signal }) };
  for (;;) {
    const answer = await post(`${gateway.url}/payments`, body, options);
    if (answer.status !== 500) return answer;
  }
}

async function lookup(...keys: string[]): Promise<{ order_no: string; status: string; amount: string }[]> {
  const { body } = await post(`${gateway.url}/payments/lookup`, { keys });
  return (body as unknown as { items: { order_no: string; status: string; amount: string }[] }).items;
}

async function effectsOf(orderNo: string): Promise<number> {
  const sql = `select 1 from effects where order_no = $1 and origin = 'replay'`;
  return withClient(databases.gateway, async (client) => (await client.query(sql, [orderNo])).rows.length);
}

async function outcomesOf(orderNo: string): Promise<string[]> {
  const sql = 'select outcome from arrivals where order_no = $1';
  return withClient(databases.gateway, async (client) => {
    const { rows } = await client.query<{ outcome: string }>(sql, [orderNo]);
    return rows.map((row) => row.outcome);
  });
}

async function isBooked(shipment: string): Promise<boolean> {
  const sql = 'select 1 from goods_out where shipment_no = $1';
  return withClient(
    databases.warehouse,
    async (client) => (await client.query(sql, [shipment])).rows.length === 1,
  );
}

describe('the seed of the demo', () => {
  it('leaves the systems apart by exactly what was planted', async () => {
    // A database of its own would say the same; here the late calls may have come already.
    const { apart } = await readEvidence(databases);
    const { orders } = scenario.expected;
    const stable = apart.missingPayments.filter(
      (order) => orders.refused.includes(order) || orders.swallowed.includes(order),
    );
    expect(stable).toHaveLength(25);
    expect(apart.differentPayments).toHaveLength(60);
    expect(apart.extraPayments).toEqual(orders.extra);
    expect(apart.missingShipments.length).toBeGreaterThan(40);
  });

  it('writes the orders in flight into the window of a run that starts now', async () => {
    await writeInFlight(databases.shop, scenario);
    const { apart } = await readEvidence(databases);
    expect(apart.missingPayments).toEqual(expect.arrayContaining([scenario.expected.orders.inFlight[39]]));
  });
});

describe('the gateway of the demo', () => {
  it('does a call with a key once, even when it comes ten times at the same moment', async () => {
    const [order = ''] = plain;
    const answers = await Promise.all(Array.from({ length: 10 }, () => pay(order)));
    expect(new Set(answers.map((answer) => answer.body.code))).toEqual(new Set(['SUCCESS']));
    expect(await effectsOf(order)).toBe(1);
    const outcomes = await outcomesOf(order);
    expect(outcomes.length).toBeGreaterThanOrEqual(10);
    expect(outcomes.filter((outcome) => outcome === 'applied')).toHaveLength(1);
  });

  it('shows an effect that was made twice under two keys', async () => {
    const order = plain[1] ?? '';
    await pay(order);
    await pay(order, { key: 'a key of its own' });
    expect(await effectsOf(order)).toBe(2);
  });

  it('corrects an order that it holds under a new key', async () => {
    const [order = ''] = scenario.expected.orders.corrected;
    expect((await pay(order, { key: `payments:${order}:correct`, operation: 'correct' })).body.code).toBe(
      'SUCCESS',
    );
    const task = tasks.get(order);
    expect(await lookup(order)).toMatchObject([{ status: task?.status, amount: `${task?.amount}00` }]);
  });

  it('refuses with a token that is new each time, and writes the token down', async () => {
    const [order = ''] = scenario.expected.orders.refused;
    const answers = [await pay(order), await pay(order)];
    expect(answers.map((answer) => answer.body.code)).toEqual(['SIGN_ERROR', 'SIGN_ERROR']);
    const tokens = answers.map((answer) => answer.body.token);
    expect(new Set(tokens).size).toBe(2);
    expect(answers[0]?.body.message).toContain(tokens[0]);
    const { gateway: found } = await readEvidence(databases);
    expect(found.arrivals.map((arrival) => arrival.token)).toEqual(expect.arrayContaining(tokens));
    expect(await lookup(order)).toEqual([]);
  });

  it('says SUCCESS to a swallowed order and holds nothing of it', async () => {
    const [order = ''] = scenario.expected.orders.swallowed;
    expect((await pay(order)).body.code).toBe('SUCCESS');
    expect(await lookup(order)).toEqual([]);
    expect(await effectsOf(order)).toBe(0);
  });

  it('says PENDING, and does the work once a moment later', async () => {
    const order = [...scenario.roles].find(([, role]) => role === 'pending')?.[0] ?? '';
    const answers = [await pay(order), await pay(order)];
    expect(answers.map((answer) => answer.body.code)).toEqual(['PENDING', 'PENDING']);
    expect(await lookup(order)).toEqual([]);
    await until('the pending order is booked', async () => (await lookup(order)).length === 1);
    expect(await effectsOf(order)).toBe(1);
  });

  it('lacks an order in flight at the first look and has it at a later one', async () => {
    const [order = ''] = scenario.expected.orders.inFlight;
    expect(await lookup(order)).toEqual([]);
    await until('the order has landed', async () => (await lookup(order)).length === 1);
    expect(await effectsOf(order)).toBe(0);
  });

  it('gets the late original calls by itself after the first replayed one', async () => {
    const { late } = scenario.expected.orders;
    await pay(plain[2] ?? '');
    await until('the late calls came', async () => (await lookup(...late)).length === 20);
    // The original call came with the key that a replay would use, so a replay has no effect.
    await pay(late[0] ?? '');
    expect(await effectsOf(late[0] ?? '')).toBe(0);
  });

  it('answers an order now and then too late, after the work was done', async () => {
    const patience = new AbortController();
    let late: string | undefined;
    for (const order of plain.slice(10, 130)) {
      const answered = pay(order, { signal: patience.signal }).then(
        () => 'an answer',
        () => 'no answer',
      );
      const slow = until('the call was written down', async () => {
        const outcomes = await outcomesOf(order);
        return outcomes.includes('slow') ? 'slow' : outcomes.includes('applied') && 'applied';
      });
      if ((await slow) === 'slow') late = order;
      else await answered;
      if (late !== undefined) break;
    }
    patience.abort();
    expect(late).toBeDefined();
    expect(await effectsOf(late ?? '')).toBe(1);
  });

  it('lists a window page by page, each payment once', async () => {
    const to = scenario.tasks[15_000]?.finishedAt ?? new Date();
    const from = scenario.tasks[12_000]?.finishedAt ?? new Date();
    const wanted = scenario.payments.filter((payment) => payment.updatedAt >= from && payment.updatedAt < to);
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const query = new URLSearchParams({ from: from.toISOString(), to: to.toISOString() });
      if (cursor !== '') query.set('cursor', cursor);
      const response = await fetch(`${gateway.url}/payments?${query}`);
      const page = (await response.json()) as { items: { order_no: string }[]; next: string | null };
      seen.push(...page.items.map((item) => item.order_no));
      cursor = page.next;
    }
    const replayed = new Set(scenario.expected.orders.corrected);
    expect(seen.filter((order) => !replayed.has(order)).sort()).toEqual(
      wanted
        .map((payment) => payment.orderNo)
        .filter((order) => !replayed.has(order))
        .sort(),
    );
    expect(seen.length).toBeGreaterThan(2_000);
  });

  it.each([
    ['a call without a key', '/payments', { order_no: 'ORD1' }, 'Idempotency-Key'],
    ['a lookup without keys', '/payments/lookup', {}, '"keys"'],
  ])('explains %s', async (_, path, body, word) => {
    const answer = await post(`${gateway.url}${path}`, body);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain(word);
  });
});

describe('the warehouse of the demo', () => {
  it('books a row on each call, so that a second call is a doubled effect', async () => {
    const shipment = scenario.lostShipments.find((number) => !scenario.slowShipments.includes(number)) ?? '';
    const body = { shipment_no: shipment, sku: 'SKU-1', quantity: 2 };
    expect((await post(`${warehouse.url}/shipments`, body, { key: 'same' })).status).toBe(201);
    expect((await post(`${warehouse.url}/shipments`, body, { key: 'same' })).status).toBe(201);
    const { warehouse: found, apart } = await readEvidence(databases);
    expect(found.effects).toContainEqual({ record: shipment, operation: 'create', times: 2 });
    expect(apart.repeatedShipments).toContain(shipment);
  });

  it('books a slow shipment although its answer does not come', async () => {
    const [shipment = ''] = scenario.slowShipments;
    const patience = new AbortController();
    const body = { shipment_no: shipment, sku: 'SKU-2', quantity: 1 };
    const answer = post(`${warehouse.url}/shipments`, body, { signal: patience.signal }).then(
      () => 'answer',
      () => 'no answer',
    );
    const row = until('the row is booked', () => isBooked(shipment)).then(() => 'row');
    expect(await Promise.race([answer, row])).toBe('row');
    patience.abort();
    expect(await answer).toBe('no answer');
  });
});
