import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { createChannel } from './alert/channels/create.ts';
import { evaluateAlerts } from './alert/evaluate-alerts.ts';
import { gatedReads, openPairs } from './app/pairs.ts';
import { Routes } from './app/routes.ts';
import type { Environment, Store } from './app/store.ts';
import { VERSION } from './app/version.ts';
import { type GateTiming, MINUTE } from './compensate/gate/watermark.ts';
import type { LoadedConfig } from './config/load.ts';
import { createRedactor } from './config/redact.ts';
import type { Config } from './config/schema.ts';
import { Secret } from './config/secret.ts';
import { createBackend, type QueueBackend } from './jobs/backend.ts';
import { deliverAlerts } from './jobs/deliver-alerts.ts';
import { noteAttempt, noteDelivery, noteEnded } from './jobs/notes.ts';
import { Paces } from './jobs/pace.ts';
import type { Pair } from './jobs/pair.ts';
import { takeTurn } from './jobs/read-gate.ts';
import type { ReconcileDeps } from './jobs/reconcile-window.ts';
import type { SendDeps } from './jobs/run-compensation.ts';
import { TIMES, type Times } from './jobs/times.ts';
import { within } from './jobs/within.ts';
import type { WorkerParts } from './jobs/worker-parts.ts';
import { createAttemptSummary } from './observe/attempt-summary.ts';
import type { Logger } from './observe/logger.ts';
import { createMetrics, type Metrics } from './observe/metrics.ts';
import type { CompareContext } from './reconcile/compare-records.ts';
import type { createSide } from './reconcile/sides/create.ts';
import { saveRevision } from './store/config-revisions.ts';
import type { Db } from './store/database.ts';
import { grantCall } from './store/grants.ts';
import { claimIdentity, readMeta } from './store/meta.ts';
import { assertSchema } from './store/migrate.ts';

/** This file and `src/app/` are the only places that build adapters and wire them (DESIGN section 4). */

export { applyConfig } from './app/apply-config.ts';
export { openPairs } from './app/pairs.ts';
export { openStore, prepareStore, type Store } from './app/store.ts';
export { VERSION } from './app/version.ts';

/** What tests put in place of the real thing; production passes none of them. */
export interface Ports {
  /** Called at the named crash points; the crash suite waits or kills there. */
  readonly checkpoint?: (name: string) => Promise<void>;
  /** Shorter windows for the gate, so that its theorem is tested in seconds. */
  readonly timing?: GateTiming;
  /** Shorter leases, so that a crash need not be waited for. */
  readonly times?: Times;
  readonly openSide?: typeof createSide;
}

export interface App {
  readonly loaded: LoadedConfig;
  readonly config: Config;
  readonly db: Db;
  readonly queue: QueueBackend;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly workerId: string;
  readonly configRevision: number | null;
  readonly pairs: ReadonlyMap<string, Pair>;
  readonly look: (pair: Pair) => CompareContext;
  /** Abort to start nothing new; what is in flight goes on. */
  readonly draining: AbortController;
  workerParts(options: { keepsSchedules: boolean }): WorkerParts;
  close(): Promise<void>;
}

const CLOSE_MS = 500;

/** Builds everything a worker, a one-shot run or a command on the sides needs, on a store that is open already. */
export async function openApp(
  loaded: LoadedConfig,
  store: Store,
  env: Environment,
  logger: Logger,
  ports: Ports = {},
): Promise<App> {
  const { config } = loaded;
  const { db } = store;
  await assertSchema(db);
  await claimIdentity(db);
  const meta = await readMeta(db);
  // The revision of the file this process was given; only `up` and `apply` make one the active one (rule 7.1).
  const { digest, document } = loaded;
  const configRevision = await saveRevision(db, { digest, document, actor: 'trueup' });
  const queueUrl = config.queue.url ?? (env['QUEUE_URL'] ? new Secret(env['QUEUE_URL']) : store.url);
  const queue = createBackend({ url: queueUrl, options: config.queue }, meta.storeId.slice(0, 8), {
    onError: (err) => logger.debug({ event: 'queue.error', err }, 'queue connection error'),
  });
  const timing = ports.timing ?? MINUTE;
  const times = ports.times ?? TIMES;
  const workerId = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  const metrics = createMetrics({ version: VERSION });
  const isActive = async () => (await readMeta(db)).activeRevision === configRevision;
  const draining = new AbortController();
  const stopping = new AbortController();
  const pairs = openPairs(
    loaded,
    gatedReads(config, db, timing, (target, seconds) => metrics.gateWaited(target, 'read', seconds)),
    ports.openSide,
  );
  const look = (pair: Pair): CompareContext => ({
    rules: pair.config.compare,
    digestKey: meta.digestKey.reveal(),
  });
  const routes = new Routes({ loaded, pairs, look, timing, stopping: stopping.signal });
  const summary = createAttemptSummary(logger);
  const listeners = { logger, summary, metrics };
  const channels = Object.entries(config.alerts.channels).map(([name, channel]) =>
    createChannel(name, channel, createRedactor(loaded.secrets)),
  );
  const send: SendDeps = {
    db,
    workerId,
    version: VERSION,
    configRevision,
    timing,
    times,
    isActive,
    route: (compensation) => routes.of(compensation),
    takeSlot: ({ gate, target }, run, signal) =>
      takeTurn(() => grantCall(db, { gate, target, timing, run }), signal),
    paces: new Paces(),
    logger,
    onAttempt: (attempt) => noteAttempt(attempt, listeners),
    onEnded: (ended) => noteEnded(ended, listeners),
    checkpoint: ports.checkpoint ?? (async () => {}),
    random: Math.random,
    draining: draining.signal,
  };
  const reconcile = (pair: Pair): ReconcileDeps => ({
    db,
    pair,
    look: look(pair),
    configRevision,
    logger,
    times,
    checkpoint: send.checkpoint,
    onRead: (counts) => {
      metrics.rowsRead(pair.name, 'source', counts.source);
      metrics.rowsRead(pair.name, 'downstream', counts.downstream);
    },
    onEnded: (result) => metrics.runEnded(pair.name, result),
  });
  return {
    loaded,
    config,
    db,
    queue,
    logger,
    metrics,
    workerId,
    configRevision,
    pairs,
    look,
    draining,
    workerParts: ({ keepsSchedules }) => ({
      db,
      queue,
      config,
      workerId,
      version: VERSION,
      configRevision,
      pairs,
      look,
      times,
      send,
      reconcile,
      evaluateAlerts: async () => {
        await evaluateAlerts(db, config.alerts);
      },
      deliverAlerts: async (signal) => {
        const { checkpoint } = send;
        const leaseMs = times.alertLease;
        for (const delivery of await deliverAlerts({ db, channels, signal, leaseMs, checkpoint }))
          noteDelivery(delivery, logger, metrics);
      },
      summarise: () => summary.flush(),
      logger,
      stopping,
      isActive,
      keepsSchedules,
    }),
    close: async () => {
      stopping.abort();
      summary.close();
      const sides = [...pairs.values()].flatMap((pair) => [pair.source, pair.downstream]);
      // A read or call that does not end when it is let go of is nobody's concern any more.
      await within(Promise.allSettled([routes.close(), ...sides.map((side) => side.close())]), CLOSE_MS);
      await queue.close();
    },
  };
}
