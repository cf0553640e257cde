import { setTimeout as sleep } from 'node:timers/promises';
import type { App } from '../app.ts';
import { MINUTE } from '../compensate/gate/watermark.ts';
import { etaOf } from '../jobs/eta.ts';
import { sendLoads, type TargetLoad } from '../jobs/send-loads.ts';
import { type RunningWorker, startWorker } from '../jobs/worker.ts';
import { type Db, storeClock } from '../store/database.ts';
import { maxSendsInWindow } from '../store/gates.ts';
import { type RunDetail, readRun } from '../store/list-runs.ts';
import { areReading, movement, type OpenWork, openWorkOfRuns } from '../store/run-progress.ts';
import { liveWorkers } from '../store/workers.ts';
import { createProgress, type Progress, say } from './output.ts';
import { progressLine } from './progress-line.ts';
import { type GaveUp, Waiting } from './waiting.ts';

const POLL_MS = 250;
/** The line is made of larger queries than the ones that find the end. */
const LINE_MS = 1_000;
const DRAIN_MS = 20_000;
const SERVER_SEEN_MS = 15_000;

/** How following ended: all is done, a person pressed Ctrl-C, or nothing moved for too long. */
export type Followed =
  | { readonly ended: 'done' | 'stopped' | 'detached' }
  | ({ readonly ended: 'gave-up' } & GaveUp);

export interface FollowOptions {
  /** Leaves the work to a server while one is running, and only follows it. */
  readonly leaveToServer: boolean;
  /** Ends when nothing moved for this long. */
  readonly waitForMs: number;
  readonly watermark: number | null;
}

/** A server that takes up what is in the store is running. */
export async function serverIsUp(db: Db): Promise<boolean> {
  return (await liveWorkers(db, SERVER_SEEN_MS)).some((worker) => !worker.oneShot);
}

/**
 * Follows runs until they and all repairs that they wait for have ended. Where no server does the work, this process is
 * a worker for as long.
 */
export async function followRuns(
  app: App,
  ids: readonly string[],
  options: FollowOptions,
): Promise<Followed> {
  const progress = createProgress();
  const asked = stopSignals(progress);
  const work = new Work(app, options.leaveToServer, progress);
  const waiting = new Waiting(options.waitForMs);
  let lineAt = 0;
  try {
    for (;;) {
      await work.take();
      if (asked.signal.aborted) break;
      const open = await openWorkOfRuns(app.db, ids);
      const reading = await areReading(app.db, ids);
      if (open.length === 0 && !reading) return { ended: 'done' };
      const loads = await loadsOf(app, open, options.watermark, ids.length);
      const { say: fact, gaveUp } = waiting.look({ loads, reading, movement: await movement(app.db, ids) });
      if (fact !== null) progress.note(fact);
      if (gaveUp !== null) return { ended: 'gave-up', ...gaveUp };
      if (performance.now() - lineAt >= LINE_MS) {
        progress.show(await lineOf(app, ids, loads));
        lineAt = performance.now();
      }
      await sleep(POLL_MS, undefined, { signal: asked.signal }).catch(() => {});
    }
    const left = await openWorkOfRuns(app.db, ids);
    progress.end();
    say(
      work.isHere ? stoppedText(left) : `detached: the server goes on with it; look at it with: trueup runs`,
    );
    return { ended: work.isHere ? 'stopped' : 'detached' };
  } finally {
    progress.end();
    await work.end();
    asked.end();
  }
}

function stoppedText(left: readonly OpenWork[]): string {
  const count = left.reduce((sum, { unsent, sent }) => sum + unsent + sent, 0);
  return `stopping: what is in flight ends first; ${count} repairs are left for trueup up, or for the next run (Ctrl-C again ends at once)`;
}

/** The worker of this process, while no server does its work. */
class Work {
  readonly #app: App;
  readonly #leaveToServer: boolean;
  readonly #progress: Progress;
  #worker: RunningWorker | undefined;
  #followed = false;

  constructor(app: App, leaveToServer: boolean, progress: Progress) {
    this.#app = app;
    this.#leaveToServer = leaveToServer;
    this.#progress = progress;
  }

  get isHere(): boolean {
    return this.#worker !== undefined;
  }

  async take(): Promise<void> {
    if (this.#worker !== undefined) return;
    if (this.#leaveToServer && (await serverIsUp(this.#app.db))) {
      if (!this.#followed)
        this.#progress.note('a server is running and does the work; Ctrl-C leaves it to the server');
      this.#followed = true;
      return;
    }
    if (this.#followed) this.#progress.note('no server is running any more: going on with the work here');
    this.#worker = await startWorker(this.#app.workerParts({ keepsSchedules: false }));
  }

  async end(): Promise<void> {
    this.#app.draining.abort();
    await this.#worker?.drain(DRAIN_MS);
  }
}

function loadsOf(
  app: App,
  open: readonly OpenWork[],
  watermark: number | null,
  runs: number,
): Promise<TargetLoad[]> {
  const sends = open.map(({ target, unsent }) => ({ target, sends: unsent, inLedger: true }));
  // Each of the runs has the number for itself.
  return sendLoads(app.db, app.config.targets, sends, watermark === null ? null : watermark * runs);
}

async function lineOf(app: App, ids: readonly string[], loads: readonly TargetLoad[]): Promise<string> {
  const runs = await Promise.all(ids.map((id) => readRun(app.db, id)));
  const now = await storeClock(app.db);
  const rates = await Promise.all(
    loads.map(async ({ target, limit }) => ({
      target,
      limit,
      lastMinute: await maxSendsInWindow(app.db, target, MINUTE.windowMs, MINUTE.windowMs),
    })),
  );
  const known = runs.filter((run): run is RunDetail => run !== null);
  return progressLine(known, rates, etaOf(loads, { now, zone: app.config.timezone, timing: MINUTE }));
}

/** The first signal asks to stop, the second ends at once: nothing is lost in either case. */
function stopSignals(progress: Progress): { signal: AbortSignal; end(): void } {
  const asked = new AbortController();
  const onSignal = () => {
    if (!asked.signal.aborted) return asked.abort();
    progress.end();
    process.exit(130);
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  return {
    signal: asked.signal,
    end: () => {
      process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    },
  };
}
