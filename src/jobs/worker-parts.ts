import type { Config } from '../config/schema.ts';
import type { Logger } from '../observe/logger.ts';
import type { CompareContext } from '../reconcile/compare-records.ts';
import type { Db } from '../store/database.ts';
import type { QueueBackend } from './backend.ts';
import type { Pair } from './pair.ts';
import type { ReconcileDeps } from './reconcile-window.ts';
import type { SendDeps } from './run-compensation.ts';
import type { Scheduled } from './schedule.ts';
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
  /** Aborted when the worker lets go: reads stop, and the run goes on elsewhere. A drain aborts it near its bound. */
  readonly stopping: AbortController;
  /** True when this process works by the active configuration; only such a one touches schedules (rule 7.1). */
  readonly isActive: () => Promise<boolean>;
  /** False for a one-shot run, which leaves schedules to the server. */
  readonly keepsSchedules: boolean;
}

/** The reconciliations that have a schedule. */
export function scheduledOf(parts: WorkerParts): Scheduled[] {
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

/** What a worker says of itself while it lives. */
export function beatOf({ workerId, version, configRevision, keepsSchedules }: WorkerParts) {
  return { id: workerId, version, revision: configRevision, oneShot: !keepsSchedules };
}
