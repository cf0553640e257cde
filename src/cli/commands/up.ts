import type { Command } from 'commander';
import { startHealthServer } from '../../api/server.ts';
import { type App, applyConfig, openApp, openStore, prepareStore, type Store } from '../../app.ts';
import { displayUrl } from '../../config/secret.ts';
import { type RunningWorker, startWorker } from '../../jobs/worker.ts';
import { schemaState } from '../../store/migrate.ts';
import { storeSnapshot } from '../../store/snapshot.ts';
import { actor, openSession, type Session } from '../session.ts';

/** What is in flight at a stop may take this long to end. */
const DRAIN_MS = 20_000;

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
  const stop = stopSignals(session);
  const store = await openStore(session.loaded.config, process.env, session.logger);
  let app: App | undefined;
  let server: Awaited<ReturnType<typeof startHealthServer>> | undefined;
  let worker: RunningWorker | undefined;
  let draining = false;
  try {
    if (role === 'up') {
      await prepareStore(store, session.logger);
      await applyConfig(store.db, session.loaded, actor());
    }
    app = await openApp(session.loaded, store, process.env, session.logger);
    server = await health(app, store, () => draining);
    worker = await startWorker(app.workerParts({ keepsSchedules: true }));
    session.logger.info(
      {
        event: 'up',
        http: server.url,
        store: displayUrl(store.url),
        queue: app.queue.kind,
        reconciliations: [...app.pairs.keys()],
      },
      `trueup is up: ${server.url}`,
    );
    await stop.asked;
    draining = true;
    session.logger.info(
      { event: 'draining' },
      'stopping: what is in flight ends first; stop again to end at once',
    );
    app.draining.abort();
    await worker.drain(DRAIN_MS);
    worker = undefined;
  } finally {
    await worker?.drain(0);
    await app?.close();
    await server?.close();
    await store.close();
    stop.end();
  }
}

/** The first SIGINT or SIGTERM drains, the second ends at once: nothing is lost in either case. */
function stopSignals(session: Session): { asked: Promise<void>; end(): void } {
  let asked = false;
  let resolve: () => void = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  const onSignal = (signal: NodeJS.Signals) => {
    if (asked) {
      session.logger.warn(
        { event: 'stopped-at-once', signal },
        'stopped at once; the sweep finds what was in flight',
      );
      process.exit(130);
    }
    asked = true;
    resolve();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  return {
    asked: promise,
    end: () => {
      process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    },
  };
}

function health(app: App, store: Store, isDraining: () => boolean) {
  const { host, port } = app.config.http;
  return startHealthServer({
    host,
    port,
    logger: app.logger,
    metrics: {
      contentType: app.metrics.contentType,
      text: async () => {
        app.metrics.setSnapshot(await storeSnapshot(store.db, app.config.targets));
        return app.metrics.text();
      },
    },
    checks: {
      store: async () => {
        const { state } = await schemaState(store.db);
        const fits = state === 'current' || state === 'ahead-compatible';
        return fits ? { ok: true } : { ok: false, detail: `the schema is ${state}` };
      },
      queue: async () =>
        (await app.queue.alive()) ? { ok: true } : { ok: false, detail: 'the queue does not answer' },
      draining: async () => (isDraining() ? { ok: false, detail: 'this process is stopping' } : { ok: true }),
    },
  });
}
