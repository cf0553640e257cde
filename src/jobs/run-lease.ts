import { type Run, RunTakenOver, renewRunLease } from '../store/runs.ts';
import type { ReconcileDeps } from './reconcile-window.ts';

/** Renews the run's lease for as long as `fn` works, and stops it when another worker took the run over. */
export async function keepingLease<T>(
  deps: ReconcileDeps,
  run: Run,
  signal: AbortSignal,
  fn: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const lost = new AbortController();
  const timer = setInterval(() => {
    renewRunLease(deps.db, run, deps.times.runLease).then(
      (ours) => {
        if (!ours)
          lost.abort(new RunTakenOver(`run ${run.id} was taken over by another worker or ended by a person`));
      },
      // A store that does not answer now may answer before the lease ends; the commit is fenced in any case.
      (err: unknown) =>
        deps.logger.warn({ event: 'run.lease-not-renewed', run: run.id, err }, 'lease not renewed'),
    );
  }, deps.times.runLease / 3);
  try {
    return await fn(AbortSignal.any([signal, lost.signal]));
  } finally {
    clearInterval(timer);
  }
}
