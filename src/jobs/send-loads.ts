import type { Target } from '../config/schema.ts';
import type { Db } from '../store/database.ts';
import { type GateStatus, gateStatus } from '../store/gates.ts';
import { readMeta } from '../store/meta.ts';
import { unsentOf } from '../store/run-progress.ts';
import type { SendLoad } from './eta.ts';

export interface TargetLoad extends SendLoad {
  /** A person stopped it, so only a person lets it go on. */
  readonly needsPerson: boolean;
}

export interface Sends {
  readonly target: string;
  readonly sends: number;
  /** These sends are in the ledger already, and so among all that wait for the target. */
  readonly inLedger: boolean;
}

/** How fast sends may go now, by the gates of their targets and, where they have one, by the watermark of their runs. */
export async function sendLoads(
  db: Db,
  targets: Readonly<Record<string, Target>>,
  sends: readonly Sends[],
  watermark: number | null,
): Promise<TargetLoad[]> {
  const { replayHeld } = await readMeta(db);
  return Promise.all(
    sends.map(async ({ target: name, sends: count, inLedger }) => {
      const target = targets[name];
      if (target === undefined) {
        const stopped = 'the configuration has no such target';
        return { target: name, sends: count, ahead: 0, limit: null, stopped, needsPerson: true };
      }
      const status = await gateStatus(db, target.upstream ?? name, target);
      const own = watermark !== null && (status.limit === null || watermark < status.limit);
      // A run with a slower watermark of its own is not held up by what waits for the target.
      const waiting = own ? 0 : await unsentOf(db, name);
      return {
        target: name,
        sends: count,
        ahead: Math.max(0, waiting - (inLedger ? count : 0)),
        limit: own && status.limit !== 0 ? watermark : status.limit,
        stopped: whyStopped(name, status, replayHeld),
        needsPerson: status.held !== null,
      };
    }),
  );
}

function whyStopped(name: string, status: GateStatus, replayHeld: string | null): string | null {
  if (status.held !== null) {
    const what = status.held === replayHeld ? 'store' : name;
    return `it is on hold (${status.held}); let it go on with: trueup release ${what} --reason "…"`;
  }
  if (status.limit !== 0) return null;
  switch (status.why) {
    case 'breaker-open':
      return 'its breaker is open after failures, and probes it by itself';
    case 'retry-after':
      return 'it asked to be left alone for a while (Retry-After)';
    default:
      return `its watermark is 0 (${status.why})`;
  }
}
