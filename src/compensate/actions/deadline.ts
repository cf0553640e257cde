/** The attempt's deadline passed. What that means (nothing sent, or nobody knows) is for the action to say. */
export class DeadlinePassed extends Error {
  override readonly name = 'DeadlinePassed';

  constructor(signal: AbortSignal) {
    super('the deadline of the attempt passed', { cause: signal.reason });
  }
}

/**
 * Runs `work` until it ends or the signal aborts, whichever is first. After the deadline `work` is not started; work
 * that runs on past it is abandoned and its late result is dropped. Throws `DeadlinePassed`, or what `work` throws.
 */
export function untilDeadline<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  if (signal.aborted) return Promise.reject(new DeadlinePassed(signal));
  return new Promise<T>((resolve, reject) => {
    const expire = () => reject(new DeadlinePassed(signal));
    signal.addEventListener('abort', expire, { once: true });
    const finished = () => signal.removeEventListener('abort', expire);
    startWork(work).then(
      (value) => {
        finished();
        resolve(value);
      },
      (error: unknown) => {
        finished();
        reject(error);
      },
    );
  });
}

/** A synchronous throw becomes a rejection. */
async function startWork<T>(work: () => Promise<T>): Promise<T> {
  return await work();
}
