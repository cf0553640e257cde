import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startEmbeddedPostgres } from 'trueup/testing';
import { type Processes, sparePort } from './processes.ts';
import type { Progress } from './progress.ts';
import { makeScenario, type Scenario } from './scenario.ts';
import { type Databases, databaseNow, seed } from './seed.ts';

/** One demo at a time: the second one would drop the databases of the first. Any number that nobody else uses. */
const DEMO_LOCK = 7_203_461;
const LOCK_MS = 10_000;

/** Everything that stands before trueup starts. */
export interface Stage {
  readonly scenario: Scenario;
  readonly databases: Databases;
  readonly gatewayUrl: string;
  readonly chatUrl: string;
  readonly httpPort: number;
  /** What `config/demo.yaml` asks for. */
  readonly env: Readonly<Record<string, string>>;
  /** The same as a file for the shell. */
  readonly envFile: string;
  readonly logFile: string;
}

export interface StageSetup {
  readonly seed: number;
  /** Holds the database server and the log. */
  readonly dir: string;
  readonly processes: Processes;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** Takes what has to be closed at the end, in the order in which it was opened. */
  readonly closing: (close: () => Promise<void>) => void;
}

/** Starts PostgreSQL and the three systems with fresh data. Works again after any end of the demo before. */
export async function setStage({
  seed: number,
  dir,
  processes,
  progress,
  signal,
  closing,
}: StageSetup): Promise<Stage> {
  progress.step('starting PostgreSQL');
  const postgres = await startEmbeddedPostgres({ dir: join(dir, 'postgres'), signal });
  closing(() => postgres.stop());
  const admin = await lockDemo(postgres.url);
  closing(() => admin.end());

  const fresh = async (name: string): Promise<string> => {
    // FORCE ends what a demo that was killed left connected.
    await admin.query(`drop database if exists ${pg.escapeIdentifier(name)} with (force)`);
    return postgres.ensureDatabase(name);
  };
  const store = await fresh('demo_store');
  const databases = {
    shop: await fresh('demo_shop'),
    gateway: await fresh('demo_gateway'),
    warehouse: await fresh('demo_warehouse'),
  };
  progress.step(`writing 20,000 payments and 2,000 shipments (seed ${number})`);
  const scenario = makeScenario(number, await databaseNow(databases.shop));
  await seed(databases, scenario);

  progress.step('starting the payment gateway, the warehouse and a chat');
  closing(() => processes.end());
  const [gatewayUrl, warehouseUrl, chatUrl, httpPort] = await Promise.all([
    processes.server('gateway', [String(number)], { DEMO_DATABASE_URL: databases.gateway }),
    processes.server('warehouse', [], { DEMO_DATABASE_URL: databases.warehouse }),
    processes.server('chat', [], {}),
    sparePort(),
  ]);
  const env = {
    DATABASE_URL: store,
    DEMO_SHOP_URL: databases.shop,
    DEMO_GATEWAY_URL: gatewayUrl,
    DEMO_WAREHOUSE_API_URL: warehouseUrl,
    DEMO_WAREHOUSE_DB_URL: databases.warehouse,
    DEMO_CHAT_URL: `${chatUrl}/alerts`,
    TRUEUP_HTTP_PORT: String(httpPort),
  };
  const envFile = join(dir, 'env.sh');
  await writeFile(envFile, shellFile(env), { mode: 0o600 });
  return {
    scenario,
    databases,
    gatewayUrl,
    chatUrl,
    httpPort,
    env,
    envFile,
    logFile: join(dir, 'trueup.log'),
  };
}

/** Held by the connection, so that it is free again whenever this process is gone. */
async function lockDemo(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  // The server ends before this process does when somebody stops it; the demo notices by its other connections.
  client.on('error', () => undefined);
  await client.connect();
  const until = performance.now() + LOCK_MS;
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [
      DEMO_LOCK,
    ]);
    if (rows[0]?.locked) return client;
    if (performance.now() > until) {
      await client.end();
      throw new Error('another demo is running in this directory; end it first');
    }
    await sleep(200);
  }
}

function shellFile(env: Readonly<Record<string, string>>): string {
  const lines = Object.entries(env).map(
    ([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'\n`,
  );
  return lines.join('');
}
