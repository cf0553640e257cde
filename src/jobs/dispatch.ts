import { type GateTiming, spacing } from '../compensate/gate/watermark.ts';
import type { Target } from '../config/schema.ts';
import { type Db, inTransaction } from '../store/database.ts';
import {
  type Dispatched,
  dispatchDue,
  promotePlanned,
  targetLoads,
  targetsOtherThan,
  targetsWithDueWork,
} from '../store/dispatchable.ts';
import { gateStatus } from '../store/gates.ts';
import { type PacedRun, pacedRuns } from '../store/run-gate.ts';
import { ringDueRuns } from '../store/runs.ts';
import { liveWorkers } from '../store/workers.ts';
import type { QueueBackend } from './backend.ts';
import type { Times } from './times.ts';

/** Rows move to the queue only this far ahead of their slots, so that hold, cancel and a new N act at once. */
const AHEAD_MS = 2_000;
const PROMOTE_BATCH = 1000;
const NO_TARGET_PLACES = 50;
const WORKER_SEEN_MS = 15_000;

export interface DispatchDeps {
  readonly db: Db;
  readonly queue: QueueBackend;
  readonly timing: GateTiming;
  readonly times: Times;
  readonly targets: Readonly<Record<string, Target>>;
  readonly checkpoint: (name: string) => Promise<void>;
}

/** Moves due compensations from the ledger to the queue. Any number of workers may do so at once. */
export async function dispatchCompensations(deps: DispatchDeps): Promise<number> {
  await promotePlanned(deps.db, PROMOTE_BATCH);
  const due = await targetsWithDueWork(deps.db, Object.keys(deps.targets));
  if (due.length === 0) return 0;
  const loads = await targetLoads(deps.db);
  const workers = Math.max(1, (await liveWorkers(deps.db, WORKER_SEEN_MS)).length);
  let count = 0;
  for (const name of due) {
    const target = deps.targets[name];
    if (!target) continue;
    const { queued, sending } = loads.get(name) ?? { queued: 0, sending: 0 };
    const paced = await pacedRuns(deps.db, name, deps.timing);
    // What waits for the slot of its own run takes no place from the others.
    const load = { sending, queued: queued - paced.reduce((sum, run) => sum + run.queued, 0) };
    const places = await placesFor(deps, name, target, load, workers);
    count += await dispatchTarget(deps, name, places, pacedPlaces(paced, deps.timing));
  }
  return count;
}

/**
 * Dispatches rows of targets that are no longer configured; they need no slot and end as unplannable. Only for a
 * process that works by the active configuration: to another one, a target that it does not know may be a new one.
 */
export async function dispatchUnknownTargets(deps: DispatchDeps): Promise<void> {
  for (const name of await targetsOtherThan(deps.db, Object.keys(deps.targets))) {
    await dispatchTarget(deps, name, NO_TARGET_PLACES);
  }
}

async function dispatchTarget(
  deps: DispatchDeps,
  name: string,
  places: number,
  paced?: ReadonlyMap<string, number>,
): Promise<number> {
  const rung = await inTransaction(deps.db, (trx) => dispatchDue(trx, name, places, deps.times.ring, paced));
  await deps.checkpoint('after-commit-before-ring');
  await ring(deps.queue, rung);
  return rung.length;
}

/** How many more rows of a target may be in the queue: what its slots can take soon, within what may be in flight. */
async function placesFor(
  deps: DispatchDeps,
  name: string,
  target: Target,
  load: { queued: number; sending: number },
  workers: number,
): Promise<number> {
  const status = await gateStatus(deps.db, target.upstream ?? name, target, deps.timing);
  if (status.held !== null || status.limit === 0) return 0;
  const inFlight = target.concurrency * workers - load.sending - load.queued;
  if (status.limit === null) return inFlight;
  // The next slot is far off: nothing is dispatched yet, so that nothing is looked at in vain.
  if (status.nextSlotInMs > AHEAD_MS) return 0;
  const ahead = Math.ceil((status.limit * AHEAD_MS) / deps.timing.windowMs) + 1 - load.queued;
  return Math.min(inFlight, ahead);
}

/** How many places a run with a watermark of its own may have: what its own slots can take soon. */
function pacedPlaces(runs: readonly PacedRun[], timing: GateTiming): Map<string, number> {
  return new Map(
    runs.map(({ runId, watermark, queued, nextSlotInMs }) => {
      const slotsAhead = Math.floor((AHEAD_MS - Math.max(0, nextSlotInMs)) / spacing(watermark, timing)) + 1;
      return [runId, slotsAhead - queued];
    }),
  );
}

/** A crash between the commit and this leaves rows whose ring expires; the sweep returns them to the ledger. */
async function ring(queue: QueueBackend, rung: readonly Dispatched[]): Promise<void> {
  const jobs = (retry: boolean) =>
    rung
      .filter((row) => row.retry === retry)
      .map((row) => ({ id: `c${row.id}-${row.ring}`, data: { id: row.id, ring: row.ring } }));
  await queue.add('sends', jobs(false));
  await queue.add('retries', jobs(true));
}

const RUN_BATCH = 50;

/** Puts due runs on the queue. */
export async function dispatchRuns(
  db: Db,
  queue: QueueBackend,
  { times, checkpoint }: Pick<DispatchDeps, 'times' | 'checkpoint'>,
): Promise<number> {
  const rung = await inTransaction(db, (trx) => ringDueRuns(trx, RUN_BATCH, times.ring));
  if (rung.length > 0) await checkpoint('after-commit-before-run-ring');
  await queue.add(
    'runs',
    rung.map((run) => ({ id: `r${run.id}-${run.ring}`, data: { id: run.id } })),
  );
  return rung.length;
}
