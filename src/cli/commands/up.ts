import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { type HealthCheck, type HealthServer, startHealthServer } from '../../api/server.ts';
import { type App, applyConfig, openApp, openStore, prepareStore, type Store } from '../../app.ts';
import { ConfigError } from '../../config/config-error.ts';
import { type LoadedConfig, loadStored } from '../../config/load.ts';
import { createRedactor } from '../../config/redact.ts';
import { displayUrl } from '../../config/secret.ts';
import { EXIT, TrueupError } from '../../error.ts';
import { type RunningWorker, startWorker } from '../../jobs/worker.ts';
import { createLogger, type Logger } from '../../observe/logger.ts';
import { activeRevision } from '../../store/config-revisions.ts';
import { readMeta } from '../../store/meta.ts';
import { assertNotTooNew, assertSchema, schemaState } from '../../store/migrate.ts';
import { storeSnapshot } from '../../store/snapshot.ts';
import { actor, openSession } from '../session.ts';

/** What is in flight at a stop may take this long to end. */
const DRAIN_MS = 20_000;
/** After a drain whatever still holds the process (a call that nobody answers) is left for this long. */
const LAST_MS = 1_000;
/** How often a process looks whether another configuration was activated. */
const FOLLOW_MS = 2_000;

export function registerUp(program: Command): void {
  program
    .command('up')
    .description('migrates the store, activates this config, and runs worker and web server')
    .addHelpText(
      'after',
      '\nExample:\n  DATABASE_URL=postgres://… QUEUE_URL=redis://… trueup up --config config/trueup.yaml',
    )
    .action((_options, command: Command) => serve(command, { role: 'up' }));
  program
    .command('worker')
    .description('runs a worker on a store that is migrated already')
    .addHelpText('after', '\nExample:\n  trueup worker --config config/trueup.yaml')
    .action((_options, command: Command) => serve(command, { role: 'worker' }));
}

async function serve(command: Command, { role }: { role: 'up' | 'worker' }): Promise<void> {
  const session = await openSession(command);
  const stop = stopSignals(session.logger);
  const store = await openStore(session.loaded.config, process.env, session.logger);
  const server = createServer(store, stop.signal);
  try {
    if (role === 'up') {
      await prepareStore(store, session.logger);
      await applyConfig(store.db, session.loaded, actor());
    } else {
      await assertSchema(store.db);
    }
    let loaded: LoadedConfig | undefined = await activeConfig(store, session.loaded);
    while (loaded && !stop.signal.aborted) loaded = await serveRevision(store, server, loaded, stop.signal);
  } finally {
    await server.close();
    await store.close();
    stop.end();
  }
}

/** Works by one revision of the configuration until it is asked to stop, or another one is activated (rule 7.1). */
async function serveRevision(
  store: Store,
  server: ReturnType<typeof createServer>,
  loaded: LoadedConfig,
  stop: AbortSignal,
): Promise<LoadedConfig | undefined> {
  const logger = createLogger({ level: loaded.config.log.level, redact: createRedactor(loaded.secrets) });
  const app = await openApp(loaded, store, process.env, logger);
  let worker: RunningWorker | undefined;
  try {
    const url = await server.serve(app);
    worker = await startWorker(app.workerParts({ keepsSchedules: true }));
    logger.info(
      {
        event: 'up',
        http: url,
        revision: app.configRevision,
        store: displayUrl(store.url),
        queue: app.queue.kind,
        watermarks: Object.fromEntries(
          Object.entries(app.config.targets).map(([name, target]) => [name, target.watermark]),
        ),
        reconciliations: [...app.pairs.keys()],
      },
      `trueup is up: ${url}`,
    );
    const next = await whatNext(store, app, stop);
    logger.info(
      { event: next.kind === 'config' ? 'config.superseded' : 'draining' },
      next.kind === 'config'
        ? 'another configuration was activated; going on with it'
        : 'stopping: what is in flight ends first; stop again to end at once',
    );
    if (next.kind === 'too-new') endInTime(logger, next.error.exit);
    app.draining.abort();
    await worker.drain(DRAIN_MS);
    worker = undefined;
    if (next.kind === 'too-new') throw next.error;
    return next.kind === 'config' ? next.loaded : undefined;
  } finally {
    await worker?.drain(0);
    await app.close();
  }
}

/** The configuration that every process follows: the one given, when that is the active one, else what is stored. */
async function activeConfig(store: Store, given: LoadedConfig): Promise<LoadedConfig> {
  const active = await activeRevision(store.db);
  if (active === null) {
    throw new TrueupError('TRU_NO_ACTIVE_CONFIG', 'no configuration is active in this store yet', {
      exit: EXIT.usage,
      hint: 'activate one with: trueup up, or trueup apply',
    });
  }
  return active.digest === given.digest ? given : loadStored(active.document, given.path, process.env);
}

type Next =
  | { readonly kind: 'stop' }
  | { readonly kind: 'config'; readonly loaded: LoadedConfig }
  /** A newer release migrated the store meanwhile and no longer allows this one (rule 7.2). */
  | { readonly kind: 'too-new'; readonly error: TrueupError };

/** Resolves when another configuration is active, when the store has outgrown this app, or when it is time to stop. */
async function whatNext(store: Store, app: App, stop: AbortSignal): Promise<Next> {
  let refused: number | null = null;
  let candidate: number | null = null;
  while (!stop.aborted) {
    await pause(FOLLOW_MS, stop);
    try {
      await assertNotTooNew(store.db);
      const { activeRevision: active } = await readMeta(store.db);
      if (active === null || active === app.configRevision || active === refused) continue;
      candidate = active;
      return { kind: 'config', loaded: await activeConfig(store, app.loaded) };
    } catch (err) {
      if (err instanceof TrueupError && err.exit === EXIT.schema) return { kind: 'too-new', error: err };
      // Only what this revision itself lacks is final; a store that did not answer is asked again.
      if (err instanceof ConfigError) refused = candidate;
      // A store that does not answer, or a revision that needs what this process has not: go on as before.
      app.logger.error(
        { event: 'config.not-followed', err },
        'the active configuration could not be taken over',
      );
    }
  }
  return { kind: 'stop' };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** The first SIGINT or SIGTERM drains, the second ends at once: nothing is lost in either case. */
function stopSignals(logger: Logger): { signal: AbortSignal; end(): void } {
  const asked = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => {
    if (asked.signal.aborted) {
      logger.warn(
        { event: 'stopped-at-once', signal },
        'stopped at once; the sweep finds what was in flight',
      );
      process.exit(130);
    }
    asked.abort();
    endInTime(logger, EXIT.clean);
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  return {
    signal: asked.signal,
    end: () => {
      process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    },
  };
}

/**
 * The process ends with the bound of the drain, also when something it let go of does not end: nothing is lost by that,
 * since what was in flight stands in the store.
 */
function endInTime(logger: Logger, code: number): void {
  setTimeout(() => {
    logger.warn({ event: 'ended-by-bound' }, 'something did not end in time and was left behind');
    process.exit(code);
  }, DRAIN_MS + LAST_MS).unref();
}

/** One web server for the process; it answers for the app that is served now. */
function createServer(store: Store, stop: AbortSignal) {
  let current: App | undefined;
  let server: HealthServer | undefined;
  return {
    serve: async (app: App): Promise<string> => {
      current = app;
      server ??= await startHealthServer({
        ...app.config.http,
        logger: app.logger,
        metrics: { contentType: app.metrics.contentType, text: () => metricsText(store, current ?? app) },
        checks: checksOf(store, () => current ?? app, stop),
      });
      return server.url;
    },
    close: async (): Promise<void> => {
      await server?.close();
    },
  };
}

async function metricsText(store: Store, app: App): Promise<string> {
  app.metrics.setSnapshot(await storeSnapshot(store.db, app.config.targets));
  return app.metrics.text();
}

function checksOf(store: Store, app: () => App, stop: AbortSignal): Record<string, HealthCheck> {
  return {
    store: async () => {
      const { state } = await schemaState(store.db);
      const fits = state === 'current' || state === 'ahead-compatible';
      return fits ? { ok: true } : { ok: false, detail: `the schema is ${state}` };
    },
    queue: async () =>
      (await app().queue.alive()) ? { ok: true } : { ok: false, detail: 'the queue does not answer' },
    draining: async () => (stop.aborted ? { ok: false, detail: 'this process is stopping' } : { ok: true }),
  };
}
