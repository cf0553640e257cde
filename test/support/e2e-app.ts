import { type App, applyConfig, openApp, openStore, type Ports } from '../../src/app.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createRedactor } from '../../src/config/redact.ts';
import { type RunningWorker, startWorker } from '../../src/jobs/worker.ts';
import { createLogger, type LogLevel } from '../../src/observe/logger.ts';
import { addMillis } from '../../src/reconcile/instant.ts';
import { openCountOfRuns } from '../../src/store/compensations.ts';
import { storeClock } from '../../src/store/database.ts';
import { type RunDetail, readRun } from '../../src/store/list-runs.ts';
import { createRun, type RunMode } from '../../src/store/runs.ts';
import { until } from './wait.ts';

export interface AppOptions {
  readonly configPath: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly level?: LogLevel;
  readonly ports?: Ports;
  readonly keepsSchedules?: boolean;
  /** False: no worker until `start()`. */
  readonly startsWorker?: boolean;
}

export interface RunningApp {
  readonly app: App;
  /** Every log line so far. */
  readonly lines: readonly string[];
  /** A run over the last hour, until it and all of its repairs have ended. */
  reconcile(options?: { mode?: RunMode; timeoutMs?: number }): Promise<RunDetail>;
  /** A run over the last hour; gives its id at once. */
  createRun(mode?: RunMode): Promise<string>;
  start(): Promise<void>;
  /** Drains, ten seconds at most when left out. */
  stop(drainMs?: number): Promise<void>;
}

const HOUR_MS = 3_600_000;
const DRAIN_MS = 10_000;

/** The product within this process, built as `trueup up` builds it, on a store that is migrated already. */
export async function startApp(options: AppOptions): Promise<RunningApp> {
  const { env = {}, level = 'info', keepsSchedules = false } = options;
  const lines: string[] = [];
  const loaded = await loadConfig(options.configPath, env);
  const logger = createLogger({
    level,
    redact: createRedactor(loaded.secrets),
    destination: { write: (line) => lines.push(line) },
  });
  const store = await openStore(loaded.config, env, logger);
  let app: App;
  let worker: RunningWorker | undefined;
  const start = async (): Promise<void> => {
    worker = await startWorker(app.workerParts({ keepsSchedules }));
  };
  try {
    await applyConfig(store.db, loaded, { name: 'test', origin: 'e2e' });
    app = await openApp(loaded, store, env, logger, options.ports);
    if (options.startsWorker ?? true) await start();
  } catch (error) {
    await store.close();
    throw error;
  }
  const newRun = async (mode: RunMode = 'compensate'): Promise<string> => {
    const now = await storeClock(app.db);
    return createRun(app.db, {
      reconciliation: 'orders',
      revision: app.configRevision,
      trigger: 'adhoc',
      mode,
      window: { from: addMillis(now, -HOUR_MS), to: now },
      movesCoverage: false,
    });
  };
  return {
    app,
    lines,
    createRun: newRun,
    start,
    async reconcile({ mode, timeoutMs = 60_000 } = {}) {
      const id = await newRun(mode);
      const ended = async () => {
        const phase = (await readRun(app.db, id))?.phase;
        return (phase === 'done' || phase === 'held') && (await openCountOfRuns(app.db, [id])) === 0;
      };
      await until(`run ${id} and its repairs have ended`, ended, { timeoutMs });
      const run = await readRun(app.db, id);
      if (run === null) throw new Error(`run ${id} is gone`);
      return run;
    },
    async stop(drainMs = DRAIN_MS) {
      app.draining.abort();
      await worker?.drain(drainMs);
      await app.close();
      await store.close();
    },
  };
}
