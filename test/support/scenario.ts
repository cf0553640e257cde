import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { addMillis, instantFromMillis } from '../../src/reconcile/instant.ts';
import type { Window } from '../../src/reconcile/record.ts';
import { type Db, openDatabase } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrate.ts';
import { createRun, type RunMode } from '../../src/store/runs.ts';
import { type ChildNode, spawnNode } from './child-process.ts';
import { built, spawnWorker } from './crash.ts';
import { createDatabase } from './database.ts';
import { type RecordedRequest, startServer } from './http-server.ts';
import { redisUrl } from './redis.ts';
import { type ScenarioAddresses, scenarioConfig } from './scenario-config.ts';
import { planOrders, type ScenarioOrder, type ScenarioSize } from './scenario-orders.ts';
import { flushQueue } from './scenario-queue.ts';
import { type Fault, type ScenarioTarget, startScenarioTarget, targetTables } from './scenario-target.ts';
import { until } from './wait.ts';

export const BACKENDS = ['postgres', 'redis'] as const;
export type Backend = (typeof BACKENDS)[number];
export const RECONCILIATIONS = ['payments', 'parcels'] as const;
export type ReconciliationName = (typeof RECONCILIATIONS)[number];

const HOUR = 3_600_000;
const SPAN_MS = 4 * HOUR;
/** What goes wrong, beside the crash: every kind, on both personalities. */
const FAULTS: readonly Fault[] = ['drop', 'error', 'refuse', 'drop', 'hang', 'pending', 'error', 'drop'];

export interface CrashWorker extends ChildNode {
  /** Resolves when its crash point (as armed, with or without `:3`) is reached and nothing in it moves any more. */
  stoppedAt(point: string): Promise<void>;
}

export interface Scenario {
  readonly backend: Backend;
  readonly store: Db;
  readonly storeUrl: string;
  readonly systems: pg.Pool;
  readonly configPath: string;
  readonly window: Window;
  readonly orders: Readonly<Record<ReconciliationName, readonly ScenarioOrder[]>>;
  readonly gateway: ScenarioTarget;
  readonly warehouse: ScenarioTarget;
  /** What the alert channel got. */
  readonly alerts: readonly RecordedRequest[];
  /** One run of each reconciliation over the whole window. */
  startRuns(mode?: RunMode): Promise<void>;
  /** `crashAt`: a crash point, or `point:3` for its third passing. */
  startWorker(options?: { crashAt?: string }): CrashWorker;
  /** The `trueup` command itself, with this config. */
  startCommand(...args: readonly string[]): ChildNode;
  /** Waits until this many writes arrived at a target. */
  arrived(target: 'gateway' | 'warehouse', count: number): Promise<void>;
  /** Waits until every run is done and every compensation has ended. */
  ended(): Promise<void>;
  /** Kills the workers and takes everything down. */
  close(): Promise<void>;
}

export interface ScenarioOptions {
  readonly backend: Backend;
  readonly size: ScenarioSize;
  readonly faults?: readonly Fault[];
  /** Changes where trueup finds the systems, such as to put a TCP proxy in between. */
  readonly addresses?: (real: ScenarioAddresses) => ScenarioAddresses;
}

/** Two pairs of systems that differ in planted ways, a store, a queue, and workers to kill. */
export async function createScenario(options: ScenarioOptions): Promise<Scenario> {
  const { backend, size, faults = FAULTS, addresses = (real) => real } = options;
  const closing: (() => Promise<unknown>)[] = [];
  const dir = await mkdtemp(join(tmpdir(), 'trueup-scenario-'));
  closing.push(() => rm(dir, { recursive: true, force: true }));
  const systemsDatabase = await createDatabase();
  closing.push(() => systemsDatabase.drop());
  // Migrated here and not cloned: a clone would share its identity, and so its queue, with other tests.
  const storeDatabase = await createDatabase();
  closing.push(() => storeDatabase.drop());
  const store = openDatabase(storeDatabase.url, { applicationName: 'trueup scenario', max: 4 });
  closing.push(() => store.destroy());
  await migrate(store);
  const systems = new pg.Pool({ connectionString: systemsDatabase.url, max: 4 });
  closing.push(() => systems.end());

  const to = instantFromMillis(Math.floor(Date.now() / HOUR) * HOUR - HOUR);
  const window = { from: addMillis(to, -SPAN_MS), to };
  const orders = {
    payments: planOrders('PAY', window, SPAN_MS, size, faults),
    parcels: planOrders('PAR', window, SPAN_MS, size, faults),
  };
  await seed(systems, orders);
  // As the scheduled run before left it: only such a one founds coverage.
  await store('coverage').insert(
    RECONCILIATIONS.map((reconciliation) => ({ reconciliation, covered_to: window.from })),
  );
  const target = async (schema: string, dedupes: boolean, planned: readonly ScenarioOrder[]) => {
    const started = await startScenarioTarget({
      databaseUrl: systemsDatabase.url,
      schema,
      dedupes,
      faults: new Map(planned.flatMap(({ orderNo, fault }) => (fault ? [[orderNo, fault] as const] : []))),
    });
    closing.push(() => started.close());
    return started;
  };
  const gateway = await target('gateway', true, orders.payments);
  const warehouse = await target('warehouse', false, orders.parcels);
  const chat = await startServer((_request, response) => response.writeHead(200).end());
  closing.push(() => chat.close());

  const configPath = join(dir, 'trueup.yaml');
  const real = {
    store: storeDatabase.url,
    queue: backend === 'redis' ? redisUrl() : storeDatabase.url,
    source: systemsDatabase.url,
    downstream: systemsDatabase.url,
    gateway: gateway.url,
    warehouse: warehouse.url,
    chat: chat.url,
  };
  await writeFile(configPath, scenarioConfig(addresses(real)));
  const workers: ChildNode[] = [];
  /** Says what is open and what the workers said when it waits in vain. */
  async function waiting(description: string, probe: () => boolean | Promise<boolean>, timeoutMs: number) {
    try {
      await until(description, probe, { timeoutMs });
    } catch (cause) {
      const said = workers.flatMap(({ pid, lines }) => lines.slice(-10).map(({ text }) => `${pid}: ${text}`));
      const open = JSON.stringify(await openWork(store));
      throw new Error(`waited in vain until ${description}; open: ${open}\n${said.join('\n')}`, { cause });
    }
  }
  return {
    backend,
    store,
    storeUrl: storeDatabase.url,
    systems,
    configPath,
    window,
    orders,
    gateway,
    warehouse,
    alerts: chat.requests,
    async startRuns(mode = 'compensate') {
      for (const reconciliation of RECONCILIATIONS) {
        const run = { reconciliation, revision: null, trigger: 'adhoc', mode, window } as const;
        await createRun(store, { ...run, movesCoverage: true });
      }
    },
    startWorker(workerOptions = {}) {
      const worker = startCrashWorker(configPath, workerOptions.crashAt);
      workers.push(worker);
      return worker;
    },
    startCommand(...args) {
      const command = spawnWorker([...args, '--config', configPath], {
        DATABASE_URL: undefined,
        QUEUE_URL: undefined,
      });
      workers.push(command);
      return command;
    },
    async arrived(name, count) {
      const target = { gateway, warehouse }[name];
      await waiting(`${count} writes arrived at the ${name}`, () => target.arrivals() >= count, 60_000);
    },
    async ended() {
      const probe = async () => (await openWork(store)).length === 0;
      await waiting('every run and compensation has ended', probe, 120_000);
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.stop()));
      if (backend === 'redis') await flushQueue({ store, backend });
      for (const close of closing.reverse()) await close();
    },
  };
}

async function seed(systems: pg.Pool, orders: Scenario['orders']): Promise<void> {
  const table =
    '(order_no text primary key, status text not null, amount numeric not null, at timestamptz not null)';
  await systems.query(
    `create schema shop; create table shop.payments ${table}; create table shop.parcels ${table};`,
  );
  await systems.query(targetTables('gateway') + targetTables('warehouse'));
  for (const [name, schema] of [
    ['payments', 'gateway'],
    ['parcels', 'warehouse'],
  ] as const) {
    const planned = orders[name];
    const there = planned.filter(({ role }) => role !== 'missing');
    await systems.query(
      `insert into shop.${name} select order_no, 'PAID', 10, at from unnest($1::text[], $2::timestamptz[]) as o(order_no, at)`,
      [planned.map(({ orderNo }) => orderNo), planned.map(({ at }) => at)],
    );
    await systems.query(
      `insert into ${schema}.payment
       select order_no, 'PAID', amount, at from unnest($1::text[], $2::numeric[], $3::timestamptz[]) as o(order_no, amount, at)`,
      [
        there.map(({ orderNo }) => orderNo),
        there.map(({ role }) => (role === 'mismatched' ? '9.99' : '10')),
        there.map(({ at }) => at),
      ],
    );
  }
}

function startCrashWorker(configPath: string, crashAt: string | undefined): CrashWorker {
  // Said before the worker fails for it.
  built('app.js');
  const program = fileURLToPath(new URL('crash-worker.mjs', import.meta.url));
  const env = { CRASH_AT: crashAt, DATABASE_URL: undefined, QUEUE_URL: undefined };
  const child = spawnNode([program, configPath], { env });
  return {
    ...child,
    async stoppedAt(point) {
      const [name] = point.split(':');
      await child.waitForLine(new RegExp(`^stopped at ${name}$`), { timeoutMs: 60_000 });
    },
  };
}

/** What is not done yet: runs by phase, compensations by state. */
async function openWork(store: Db): Promise<unknown[]> {
  const { rows } = await store.raw<{ rows: unknown[] }>(
    `select 'run' as what, phase as state, count(*)::int from run where phase <> 'done' group by phase
     union all
     select 'compensation', state, count(*)::int from compensation where ended_at is null group by state`,
  );
  return rows;
}
