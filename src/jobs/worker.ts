import type { Config } from '../config/schema.ts';
import type { Logger } from '../observe/logger.ts';
import type { CompareContext } from '../reconcile/compare-records.ts';
import type { Db } from '../store/database.ts';
import { deleteExpired } from '../store/retention.ts';
import { claimRun, finishRun, RunTakenOver, yieldRun } from '../store/runs.ts';
import { heartbeat, removeWorker } from '../store/workers.ts';
import type { Consumer, QueueBackend, QueuedJob } from './backend.ts';
import type { Tick } from './bull.ts';
import { dispatchCompensations, dispatchRuns, dispatchUnknownTargets } from './dispatch.ts';
import { endOrphans, GIVE_UP_BATCH, giveUpWaiting } from './give-up.ts';
import type { Pair } from './pair.ts';
import { type ReconcileDeps, reconcileStep } from './reconcile-window.ts';
import { RELOOK_BATCH, relookDiffs } from './relook.ts';
import { type Repeating, repeat } from './repeat.ts';
import { runCompensation, type SendDeps, settleDue } from './run-compensation.ts';
import { claimDueSlots, type Scheduled } from './schedule.ts';
import { SETTLE_BATCH } from './settle.ts';
import { sweep } from './sweep.ts';
import type { Times } from './times.ts';

/** What a worker process runs with; `app.ts` builds it. */
export interface WorkerParts {
  readonly db: Db;
  readonly queue: QueueBackend;
  readonly config: Config;
  readonly workerId: string;
  readonly version: string;
  readonly configRevision: number | null;
  readonly pairs: ReadonlyMap<string, Pair>;
  readonly look: (pair: Pair) => CompareContext;
  readonly times: Times;
  readonly send: SendDeps;
  readonly reconcile: (pair: Pair) => ReconcileDeps;
  /** Evaluates alert conditions and delivers messages; one round each. */
  readonly evaluateAlerts: () => Promise<void>;
  readonly deliverAlerts: (signal: AbortSignal) => Promise<void>;
  readonly summarise: () => void;
  readonly logger: Logger;
  /** Aborted when the worker must let go at once: reads stop, and the run goes on elsewhere. */
  readonly stopping: AbortSignal;
  /** True when this process works by the active configuration; only such a one touches schedules (rule 7.1). */
  readonly isActive: () => Promise<boolean>;
  /** False for a one-shot run, which leaves schedules to the server. */
  readonly keepsSchedules: boolean;
}

export interface RunningWorker {
  /** Takes nothing new, lets what is in flight end within the bound, then lets go of the rest. */
  drain(withinMs: number): Promise<void>;
}

const PAUSE = {
  dispatch: 250,
  settle: 400,
  upkeep: 10_000,
  giveUp: 10_000,
  relook: 10_000,
  alerts: 2_000,
  heartbeat: 5_000,
  summary: 60_000,
  retention: 3_600_000,
} as const;
const RUN_CONCURRENCY = 4;
/** A run that this process's configuration does not know is left to others for this long. */
const NOT_MINE_MS = 5_000;
/** Rows that wait for a slot hold a place too; they are few seconds' worth (see dispatch.ts). */
const WAITING_PLACES = 64;

export async function startWorker(parts: WorkerParts): Promise<RunningWorker> {
  await parts.queue.open();
  await heartbeat(parts.db, { id: parts.workerId, version: parts.version, revision: parts.configRevision });
  const consumers = startConsumers(parts);
  const loops = startLoops(parts);
  parts.logger.info(
    { event: 'worker.started', worker: parts.workerId, queue: parts.queue.kind },
    'worker started',
  );
  return {
    drain: async (withinMs) => {
      await Promise.all(loops.map((loop) => loop.stop()));
      await parts.send.checkpoint('in-drain');
      await Promise.all(consumers.map((consumer) => consumer.close(withinMs)));
      await removeWorker(parts.db, parts.workerId);
      parts.logger.info({ event: 'worker.stopped', worker: parts.workerId }, 'worker stopped');
    },
  };
}

function startConsumers(parts: WorkerParts): Consumer[] {
  const places = Object.values(parts.config.targets).reduce(
    (sum, target) => sum + target.concurrency,
    WAITING_PLACES,
  );
  const send = guarded(parts, (data) =>
    runCompensation(parts.send, { id: String(data['id']), ring: Number(data['ring']) }),
  );
  return [
    parts.queue.consume(
      'runs',
      RUN_CONCURRENCY,
      guarded(parts, (data) => stepRun(parts, String(data['id']))),
    ),
    parts.queue.consume('sends', places, send),
    parts.queue.consume('retries', places, send),
    ...(parts.keepsSchedules
      ? [
          parts.queue.consume(
            'ticks',
            1,
            guarded(parts, (data) => tick(parts, String(data['reconciliation']))),
          ),
        ]
      : []),
  ];
}

/** A job that throws is logged and dropped; its row's ring or lease runs out, and the sweep finds it. */
function guarded(
  parts: WorkerParts,
  handle: (data: QueuedJob['data']) => Promise<void>,
): (data: QueuedJob['data']) => Promise<void> {
  return async (data) => {
    try {
      await handle(data);
    } catch (err) {
      if (err instanceof RunTakenOver)
        return parts.logger.info({ event: 'run.taken-over', err }, 'run taken over');
      parts.logger.error({ event: 'job.failed', data, err }, 'a job failed; the sweep will find its row');
    }
  };
}

/** Does the steps of a run that are due, one after the other. */
export async function stepRun(
  parts: Pick<
    WorkerParts,
    'db' | 'workerId' | 'isActive' | 'times' | 'pairs' | 'reconcile' | 'logger' | 'stopping'
  >,
  id: string,
): Promise<void> {
  for (;;) {
    const run = await claimRun(parts.db, id, parts.workerId, parts.times.runLease);
    if (!run) return;
    const pair = parts.pairs.get(run.reconciliation);
    if (!pair) {
      if (await parts.isActive()) {
        const reason = `the configuration no longer has a reconciliation ${run.reconciliation}`;
        await finishRun(parts.db, run, {
          result: 'failed',
          verdict: 'undecided',
          reason,
          counts: run.counts,
        });
        return;
      }
      parts.logger.warn(
        { event: 'run.unknown', run: id, reconciliation: run.reconciliation },
        'no such reconciliation here',
      );
      await yieldRun(parts.db, run, { phase: run.phase, afterMs: NOT_MINE_MS });
      return;
    }
    await reconcileStep(parts.reconcile(pair), run, parts.stopping);
  }
}

function scheduledOf(parts: WorkerParts): Scheduled[] {
  return [...parts.pairs.values()].flatMap((pair) =>
    pair.config.schedule
      ? [
          {
            name: pair.name,
            schedule: pair.config.schedule,
            zone: pair.config.schedule.timezone ?? pair.zone,
            mode: pair.config.mode,
            revision: parts.configRevision,
          },
        ]
      : [],
  );
}

async function tick(parts: WorkerParts, name: string): Promise<void> {
  if (!(await parts.isActive())) return;
  const scheduled = scheduledOf(parts).find((known) => known.name === name);
  if (!scheduled) return;
  const runs = await claimDueSlots(parts.db, scheduled);
  if (runs.length > 0) await dispatchRuns(parts.db, parts.queue, parts.send);
}

async function keepSchedules(parts: WorkerParts): Promise<void> {
  if (!(await parts.isActive())) return;
  const scheduled = scheduledOf(parts);
  const ticks: Tick[] = scheduled.map(({ name, schedule, zone }) => ({ name, schedule, zone }));
  // The slots first: they are the truth and need no queue.
  for (const one of scheduled) await claimDueSlots(parts.db, one);
  await parts.queue.keepTicks(ticks);
}

function startLoops(parts: WorkerParts): Repeating[] {
  const loop = (name: string, pauseMs: number, round: (signal: AbortSignal) => Promise<boolean>) =>
    repeat(name, pauseMs, parts.logger, round);
  const once = (fn: (signal: AbortSignal) => Promise<unknown>) => async (signal: AbortSignal) => {
    await fn(signal);
    return false;
  };
  const { db, queue } = parts;
  const dispatch = {
    db,
    queue,
    timing: parts.send.timing,
    times: parts.times,
    targets: parts.config.targets,
    checkpoint: parts.send.checkpoint,
  };
  const beat = { id: parts.workerId, version: parts.version, revision: parts.configRevision };
  const loops = [
    loop(
      'dispatch',
      PAUSE.dispatch,
      once(() => dispatchCompensations(dispatch)),
    ),
    loop(
      'dispatch-runs',
      PAUSE.dispatch,
      once(() => dispatchRuns(db, queue, parts.send)),
    ),
    loop(
      'sweep',
      parts.times.sweepPause,
      once(() => sweep(db, parts.logger)),
    ),
    loop(
      'alerts',
      PAUSE.alerts,
      once(() => parts.evaluateAlerts()),
    ),
    loop(
      'deliver-alerts',
      PAUSE.alerts / 2,
      once((signal) => parts.deliverAlerts(signal)),
    ),
    loop('orphans', PAUSE.giveUp, async () => {
      if (!(await parts.isActive())) return false;
      await dispatchUnknownTargets(dispatch);
      return (await endOrphans(parts.send, [...parts.pairs.keys()])) >= GIVE_UP_BATCH;
    }),
    loop(
      'give-up',
      PAUSE.giveUp,
      async () => (await giveUpWaiting(parts.send, parts.config.targets)) >= GIVE_UP_BATCH,
    ),
    loop(
      'heartbeat',
      PAUSE.heartbeat,
      once(() => heartbeat(db, beat)),
    ),
    loop(
      'summary',
      PAUSE.summary,
      once(async () => parts.summarise()),
    ),
  ];
  for (const pair of parts.pairs.values()) {
    const look = parts.look(pair);
    loops.push(
      loop(
        `settle ${pair.name}`,
        PAUSE.settle,
        async (signal) => (await settleDue(parts.send, pair, look, signal)) >= SETTLE_BATCH,
      ),
      loop(
        `relook ${pair.name}`,
        PAUSE.relook,
        async (signal) => (await relookDiffs(db, pair, look, signal)) >= RELOOK_BATCH,
      ),
    );
  }
  if (!parts.keepsSchedules) return loops;
  const { runs: runsMs, diffs: diffsMs } = parts.config.retention;
  loops.push(
    loop(
      'schedules',
      PAUSE.upkeep,
      once(() => keepSchedules(parts)),
    ),
    loop(
      'retention',
      PAUSE.retention,
      once(() => deleteExpired(db, { runsMs, diffsMs }, 10_000)),
    ),
  );
  return loops;
}
