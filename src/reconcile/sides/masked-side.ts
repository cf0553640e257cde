import { type Side, SideError } from '../side.ts';

/**
 * The same side, whose errors show no secret of the configuration: a server quotes statements and values in its errors,
 * and these become reasons of runs, which are stored.
 */
export function maskedSide(side: Side, redact: (text: string) => string): Side {
  const hide = (error: unknown): unknown => {
    if (!(error instanceof SideError)) return error;
    const { code, where, transient } = error;
    const message = error.message.slice(`${where}: `.length);
    const shown = redact(message);
    // The cause is left out: it holds the text as it was.
    return shown === message ? error : new SideError(code, where, shown, { transient });
  };
  const guarded = async <T>(call: () => Promise<T>): Promise<T> => {
    try {
      return await call();
    } catch (error) {
      throw hide(error);
    }
  };
  return {
    label: side.label,
    canScan: side.canScan,
    ordered: side.ordered,
    clock: (signal) => guarded(() => side.clock(signal)),
    async *scan(window, signal) {
      try {
        yield* side.scan(window, signal);
      } catch (error) {
        throw hide(error);
      }
    },
    lookup: (keys, signal) => guarded(() => side.lookup(keys, signal)),
    describe: (signal) => guarded(() => side.describe(signal)),
    close: () => side.close(),
  };
}
