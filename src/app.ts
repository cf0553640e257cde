import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { createChannel } from './alert/channels/create.ts';
import { refreshAlerts } from './alert/outbox.ts';
import type { Sender } from './compensate/action.ts';
import { createSender } from './compensate/actions/create.ts';
import { maskedSender } from './compensate/actions/masked-sender.ts';
import { type GateTiming, MINUTE } from './compensate/gate/watermark.ts';
import { repairByName } from './compensate/plan.ts';
import type { LoadedConfig } from './config/load.ts';
import { createRedactor } from './config/redact.ts';
import type { Config, Repair, SideConfig, Target } from './config/schema.ts';
import { Secret } from './config/secret.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded/postgres.ts';
import { createBackend, type QueueBackend } from './jobs/backend.ts';
import { deliverAlerts } from './jobs/deliver-alerts.ts';
import { LookBatch } from './jobs/look-batch.ts';
import { noteAttempt, noteDelivery, noteEnded } from './jobs/notes.ts';
import type { Actor } from './jobs/operator.ts';
import type { Pair } from './jobs/pair.ts';
import { takeTurn } from './jobs/read-gate.ts';
import type { ReconcileDeps } from './jobs/reconcile-window.ts';
import type { RepairRoute, SendDeps } from './jobs/run-compensation.ts';
import { TIMES, type Times } from './jobs/times.ts';
import { Turns } from './jobs/turns.ts';
import type { WorkerParts } from './jobs/worker.ts';
import { createAttemptSummary } from './observe/attempt-summary.ts';
import type { Logger } from './observe/logger.ts';
import { createMetrics, type Metrics } from './observe/metrics.ts';
import type { CompareContext } from './reconcile/compare-records.ts';
import { lookBoth } from './reconcile/look.ts';
import type { ReadGate, Side } from './reconcile/side.ts';
import { createSide } from './reconcile/sides/create.ts';
import { maskedSide } from './reconcile/sides/masked-side.ts';
import type { Compensation } from './store/compensations.ts';
import { activateRevision, saveRevision } from './store/config-revisions.ts';
import { type Db, inTransaction, openDatabase } from './store/database.ts';
import { setCeilings } from './store/gates.ts';
import { grantCall, grantRead } from './store/grants.ts';
import { claimIdentity, readMeta } from './store/meta.ts';
import { assertSchema, migrate } from './store/migrate.ts';

/** The only place that builds adapters and wires them (DESIGN section 4). */

export const VERSION: string = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
).version;

type Environment = Readonly<Record<string, string | undefined>>;

// ------------------------------------------------------------------------------------------------------- store

export interface Store {
  readonly db: Db;
  readonly url: Secret;
  readonly embedded: EmbeddedPostgres | null;
  close(): Promise<void>;
}

/** Opens the store: `store.url`, else DATABASE_URL, else the embedded PostgreSQL in `.trueup/` of this directory. */
export async function openStore(config: Config, env: Environment, logger: Logger): Promise<Store> {
  const given = config.store.url ?? (env['DATABASE_URL'] ? new Secret(env['DATABASE_URL']) : null);
  const embedded = given ? null : await startEmbedded(logger);
  const url = given ?? new Secret(embedded ? await embedded.ensureDatabase('trueup') : '');
  const db = openDatabase(url.reveal(), { applicationName: 'trueup', max: 20 });
  return {
    db,
    url,
    embedded,
    close: async () => {
      await db.destroy();
      await embedded?.stop();
    },
  };
}

function startEmbedded(logger: Logger): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({
    dir: resolve('.trueup', 'postgres'),
    onRestart: (reason) =>
      logger.warn({ event: 'embedded.restarted', reason }, 'the embedded PostgreSQL was started again'),
  });
}

/** Makes or updates the store's tables; other starters wait for it. */
export async function prepareStore(store: Store, logger: Logger): Promise<string[]> {
  const { applied } = await migrate(store.db);
  if (applied.length > 0) logger.info({ event: 'store.migrated', applied }, 'store migrated');
  return applied;
}

/** Stores the configuration as a numbered revision and makes it the active one (rule 7.1). */
export function applyConfig(db: Db, loaded: LoadedConfig, actor: Actor): Promise<number> {
  return inTransaction(db, async (trx) => {
    const { digest, document } = loaded;
    const revision = await saveRevision(trx, { digest, document, actor: actor.name });
    await activateRevision(trx, revision, actor.name, actor.origin);
    await setCeilings(trx, ceilingsOf(loaded.config));
    return revision;
  });
}

/** The ceiling of each gate; where several targets share one, the lowest. Null is unlimited. */
function ceilingsOf({ targets }: Config): Map<string, number | null> {
  const ceilings = new Map<string, number | null>();
  for (const [name, { upstream, watermark }] of Object.entries(targets)) {
    const gate = upstream ?? name;
    const known = ceilings.get(gate) ?? null;
    const own = watermark === 'unlimited' ? null : watermark;
    ceilings.set(gate, known === null || own === null ? (known ?? own) : Math.min(known, own));
  }
  return ceilings;
}

// --------------------------------------------------------------------------------------------------------- app

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
  const pairs = openPairs(loaded, gatedReads(config, db, timing), ports.openSide);
  const look = (pair: Pair): CompareContext => ({
    rules: pair.config.compare,
    digestKey: meta.digestKey.reveal(),
  });
  const routes = new Routes({ loaded, pairs, look, timing, stopping: stopping.signal });
  const summary = createAttemptSummary(logger);
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
    takeSlot: (gate, target, signal) => takeTurn(() => grantCall(db, { gate, target, timing }), signal),
    logger,
    onAttempt: (attempt) => noteAttempt(attempt, summary, metrics),
    onEnded: (ended) => noteEnded(ended, summary, metrics),
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
        await inTransaction(db, (trx) => refreshAlerts(trx, config.alerts));
      },
      deliverAlerts: async (signal) => {
        const { checkpoint } = send;
        const leaseMs = times.alertLease;
        for (const delivery of await deliverAlerts({ db, channels, signal, leaseMs, checkpoint }))
          noteDelivery(delivery, logger, metrics);
      },
      summarise: () => summary.flush(),
      logger,
      stopping: stopping.signal,
      isActive,
      keepsSchedules,
    }),
    close: async () => {
      stopping.abort();
      summary.close();
      await routes.close();
      await Promise.all(
        [...pairs.values()].flatMap((pair) => [pair.source.close(), pair.downstream.close()]),
      );
      await queue.close();
    },
  };
}

function gatedReads(config: Config, db: Db, timing: GateTiming): ReadGate {
  return {
    take: (name, signal) => {
      const target = config.targets[name];
      if (!target) throw new Error(`no target ${name}`);
      const gate = target.upstream ?? name;
      return takeTurn(() => grantRead(db, { gate, reads: target.reads, timing }), signal);
    },
  };
}

/** Opens the sides of every reconciliation; nothing is connected before the first read. */
export function openPairs(
  { config, secrets }: LoadedConfig,
  readGate: ReadGate,
  openSide: typeof createSide = createSide,
): Map<string, Pair> {
  const redact = createRedactor(secrets);
  return new Map(
    Object.entries(config.reconciliations).map(([name, reconciliation]) => {
      const open = (side: SideConfig, sideName: string): Side => {
        const opened = openSide(side, {
          name: `${name} ${sideName}`,
          keyNames: reconciliation.key,
          rules: reconciliation.compare,
          targets: config.targets,
          readGate,
        });
        return maskedSide(opened, redact);
      };
      const source = open(reconciliation.source, 'source');
      const downstream = open(reconciliation.downstream, 'downstream');
      return [name, { name, config: reconciliation, zone: config.timezone, source, downstream }];
    }),
  );
}

interface RouteDeps {
  readonly loaded: LoadedConfig;
  readonly pairs: ReadonlyMap<string, Pair>;
  readonly look: (pair: Pair) => CompareContext;
  readonly timing: GateTiming;
  readonly stopping: AbortSignal;
}

/** A look is taken about this long before its turn, so that it is still fresh then. */
const NEAR_SECONDS = 0.7;

/** Senders and gathered looks, one per repair and per reconciliation, made when first needed. */
class Routes {
  readonly #deps: RouteDeps;
  readonly #senders = new Map<string, Sender>();
  readonly #looks = new Map<string, LookBatch>();
  readonly #turns = new Map<string, Turns>();

  constructor(deps: RouteDeps) {
    this.#deps = deps;
  }

  of(compensation: Compensation): RepairRoute | undefined {
    const { loaded, pairs } = this.#deps;
    const pair = pairs.get(compensation.reconciliation);
    const repair = pair && repairByName(pair.config, compensation.repair);
    const target = loaded.config.targets[compensation.target];
    if (!pair || !repair || !target || repair.target !== compensation.target) return undefined;
    return {
      pair,
      repair,
      target,
      gate: target.upstream ?? compensation.target,
      sender: this.#sender(`${pair.name} ${compensation.repair}`, repair),
      look: (key) => this.#look(pair).look(key),
      turns: this.#turnsOf(target.upstream ?? compensation.target, target),
    };
  }

  #sender(name: string, repair: Repair): Sender {
    const known = this.#senders.get(name);
    if (known) return known;
    const { config, directory, secrets } = this.#deps.loaded;
    const target = config.targets[repair.target];
    if (!target) throw new Error(`no target ${repair.target}`);
    const options = { targetName: repair.target, target, baseDirectory: directory };
    const made = maskedSender(createSender(repair.action, options), createRedactor(secrets));
    this.#senders.set(name, made);
    return made;
  }

  #look(pair: Pair): LookBatch {
    const known = this.#looks.get(pair.name);
    if (known) return known;
    const { look, stopping } = this.#deps;
    const made = new LookBatch((keys) => lookBoth(keys, pair.source, pair.downstream, look(pair), stopping));
    this.#looks.set(pair.name, made);
    return made;
  }

  #turnsOf(gate: string, target: Target): Turns {
    const known = this.#turns.get(gate);
    if (known) return known;
    const { concurrency, watermark } = target;
    const perSecond =
      watermark === 'unlimited' ? concurrency : (watermark * 1000) / this.#deps.timing.windowMs;
    const made = new Turns({ concurrency, nearness: Math.ceil(perSecond * NEAR_SECONDS) + 1 });
    this.#turns.set(gate, made);
    return made;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#senders.values()].map((sender) => sender.close()));
  }
}
