import { heartbeat } from '../store/workers.ts';
import type { Tick } from './bull.ts';
import { dispatchCompensations, dispatchRuns, dispatchUnknownTargets } from './dispatch.ts';
import { endOrphans, GIVE_UP_BATCH, giveUpWaiting } from './give-up.ts';
import { RELOOK_BATCH, relookDiffs } from './relook.ts';
import { type Repeating, repeat } from './repeat.ts';
import { agesOf, retain } from './retention.ts';
import { settleDue } from './run-compensation.ts';
import { claimDueSlots } from './schedule.ts';
import { SETTLE_BATCH } from './settle.ts';
import { sweep } from './sweep.ts';
import { beatOf, scheduledOf, type WorkerParts } from './worker-parts.ts';

const PAUSE = {
  dispatch: 250,
  settle: 400,
  upkeep: 10_000,
  giveUp: 10_000,
  relook: 10_000,
  alerts: 2_000,
  heartbeat: 5_000,
  summary: 60_000,
  retention: 300_000,
} as const;

async function keepSchedules(parts: WorkerParts): Promise<void> {
  if (!(await parts.isActive())) return;
  const scheduled = scheduledOf(parts);
  const ticks: Tick[] = scheduled.map(({ name, schedule, zone }) => ({ name, schedule, zone }));
  // The slots first: they are the truth and need no queue.
  for (const one of scheduled) await claimDueSlots(parts.db, one);
  await parts.queue.keepTicks(ticks);
}

/** The timers of a worker process. None needs the queue to find its work, so all survive a flushed one. */
export function startLoops(parts: WorkerParts): Repeating[] {
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
      once(() => heartbeat(db, beatOf(parts))),
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
  const ages = agesOf(parts.config);
  loops.push(
    loop(
      'schedules',
      PAUSE.upkeep,
      once(() => keepSchedules(parts)),
    ),
    loop(
      'retention',
      PAUSE.retention,
      once((signal) => retain(db, ages, signal)),
    ),
  );
  return loops;
}
