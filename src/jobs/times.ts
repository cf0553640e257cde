/**
 * After which times work that nobody reports any more is taken up again. Constants in production; the fault suites
 * shorten them, so that a test of a crash need not wait for a minute. Every one is milliseconds.
 */
export interface Times {
  /** A job on the queue, and a row that a job has claimed, count as alive for this long (rule 6.19). */
  readonly ring: number;
  /** A worker that says nothing about a run's step for this long has lost the run. */
  readonly runLease: number;
  /** A send counts as lost this much later than its deadline, which lets a slow worker still record it. */
  readonly sendMargin: number;
  /** A worker that claimed looks after sends and died is followed by another after this. */
  readonly settleClaim: number;
  /** A worker that took an alert from the outbox and died is followed by another after this. */
  readonly alertLease: number;
  /** How often the sweep looks for what a dead worker or a flushed queue left behind. */
  readonly sweepPause: number;
}

export const TIMES: Times = {
  ring: 30_000,
  runLease: 60_000,
  sendMargin: 5_000,
  settleClaim: 15_000,
  // Longer than one message may take to be sent.
  alertLease: 30_000,
  sweepPause: 5_000,
};
