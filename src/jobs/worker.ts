import { claimRun, finishRun, RunTakenOver, yieldRun } from '../store/runs.ts';
import { heartbeat, removeWorker } from '../store/workers.ts';
import type { Consumer, QueuedJob } from './backend.ts';
import { dispatchRuns } from './dispatch.ts';
import { startLoops } from './loops.ts';
import { reconcileStep } from './reconcile-window.ts';
import type { Repeating } from './repeat.ts';
import { runCompensation } from './run-compensation.ts';
import { claimDueSlots } from './schedule.ts';
import { within } from './within.ts';
import { beatOf, scheduledOf, type WorkerParts } from './worker-parts.ts';

export interface RunningWorker {
  /**
   * Takes nothing new, lets what is in flight end within the bound, then lets go of the rest. Reads are let go of
   * shortly before, so that their runs can still be given back.
   */
  drain(withinMs: number): Promise<void>;
}

/** Before its bound a drain lets go of reads this early, so that what they were for can be stored in time. */
const LET_GO_MS = 2_000;
const CLOSE_MS = 500;
const RUN_CONCURRENCY = 4;
/** A run that this process's configuration does not know is left to others for this long. */
const NOT_MINE_MS = 5_000;
/** Rows that wait for a slot hold a place too; they are few seconds' worth (see dispatch.ts). */
const WAITING_PLACES = 64;

export async function startWorker(parts: WorkerParts): Promise<RunningWorker> {
  await parts.queue.open();
  await heartbeat(parts.db, beatOf(parts));
  const consumers = startConsumers(parts);
  const loops = startLoops(parts);
  parts.logger.info(
    { event: 'worker.started', worker: parts.workerId, queue: parts.queue.kind },
    'worker started',
  );
  return {
    drain: (withinMs) => drain(parts, { loops, consumers, withinMs }),
  };
}

async function drain(
  parts: WorkerParts,
  running: { loops: readonly Repeating[]; consumers: readonly Consumer[]; withinMs: number },
): Promise<void> {
  const { loops, consumers, withinMs } = running;
  const end = performance.now() + withinMs;
  const left = () => end - performance.now();
  const stopReads = setTimeout(() => parts.stopping.abort(), withinMs - Math.min(LET_GO_MS, withinMs / 4));
  const stopped = Promise.allSettled(loops.map((loop) => loop.stop()));
  await parts.send.checkpoint('in-drain');
  const closed = Promise.allSettled(consumers.map((consumer) => consumer.close(left())));
  const inTime = await within(Promise.all([stopped, closed]), left() + CLOSE_MS);
  clearTimeout(stopReads);
  parts.stopping.abort();
  const { logger, workerId: worker } = parts;
  if (!inTime) logger.warn({ event: 'worker.let-go', worker }, 'a part of the worker did not end in time');
  await removed(parts);
  logger.info({ event: 'worker.stopped', worker }, 'worker stopped');
}

/** A worker that could not say goodbye is forgotten by the others when it was not seen for some seconds. */
async function removed({ db, workerId, logger }: WorkerParts): Promise<void> {
  const gone = removeWorker(db, workerId).catch((err: unknown) =>
    logger.warn({ event: 'worker.not-removed', worker: workerId, err }, 'the store did not answer'),
  );
  await within(gone, CLOSE_MS);
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
      // Reads end with an error when the worker lets go of them; that is no failure.
      if (parts.stopping.signal.aborted)
        return parts.logger.info(
          { event: 'job.let-go', data, err },
          'let go of a job; its row goes on elsewhere',
        );
      parts.logger.error({ event: 'job.failed', data, err }, 'a job failed; the sweep will find its row');
    }
  };
}

/** Does the steps of a run that are due, one after the other; a worker that drains begins no further one. */
export async function stepRun(
  parts: Pick<
    WorkerParts,
    'db' | 'workerId' | 'isActive' | 'times' | 'pairs' | 'reconcile' | 'logger' | 'stopping' | 'send'
  >,
  id: string,
): Promise<void> {
  while (!parts.send.draining.aborted) {
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
    try {
      await reconcileStep(parts.reconcile(pair), run, parts.stopping.signal);
    } catch (error) {
      if (!parts.stopping.signal.aborted || error instanceof RunTakenOver) throw error;
      await yieldRun(parts.db, run, { phase: run.phase, afterMs: 0, tries: run.tries });
      parts.logger.info({ event: 'run.given-back', run: run.id }, 'let go of a run; it goes on elsewhere');
      return;
    }
  }
}

async function tick(parts: WorkerParts, name: string): Promise<void> {
  if (!(await parts.isActive())) return;
  const scheduled = scheduledOf(parts).find((known) => known.name === name);
  if (!scheduled) return;
  const runs = await claimDueSlots(parts.db, scheduled);
  if (runs.length > 0) await dispatchRuns(parts.db, parts.queue, parts.send);
}
