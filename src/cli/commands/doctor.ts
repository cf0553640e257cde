import type { Command } from 'commander';
import { EXIT } from '../../error.ts';
import { millisOf } from '../../reconcile/instant.ts';
import { type Side, SideError } from '../../reconcile/side.ts';
import { storeClock } from '../../store/database.ts';
import { readMeta } from '../../store/meta.ts';
import { liveWorkers } from '../../store/workers.ts';
import { type Column, printRows } from '../output.ts';
import { withApp } from '../session.ts';

interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
}

const COLUMNS: readonly Column<Finding>[] = [
  { head: 'check', cell: (finding) => finding.check },
  { head: 'ok', cell: (finding) => (finding.ok ? 'yes' : 'NO') },
  { head: 'detail', cell: (finding) => finding.detail },
];
/** A clock further off than this makes `settle` and business dates doubtful. */
const CLOCK_MS = 2_000;
const WORKER_SEEN_MS = 15_000;

export function registerDoctor(program: Command): void {
  program
    .command('doctor')
    .description('looks at store, queue, schedules, workers, sides and clocks, and says what is wrong')
    .addHelpText('after', '\nExample:\n  trueup doctor --format json')
    .action((_options, command: Command) =>
      withApp(command, async ({ format }, app) => {
        const meta = await readMeta(app.db);
        const workers = await liveWorkers(app.db, WORKER_SEEN_MS);
        const findings: Finding[] = [
          { check: 'store', ok: true, detail: `schema is current, store ${meta.storeId}` },
          clock('store clock', await storeClock(app.db)),
          { check: 'replay', ok: meta.replayHeld === null, detail: meta.replayHeld ?? 'not held' },
          { check: 'queue', ok: await app.queue.alive(), detail: app.queue.kind },
          {
            check: 'workers',
            ok: workers.length > 0,
            detail:
              workers.length > 0
                ? workers.map(({ id }) => id).join(', ')
                : 'none is alive: start one with trueup up',
          },
          ...(await ticks(app)),
          ...(await Promise.all(
            [...app.pairs.values()].flatMap((pair) => [side(pair.source), side(pair.downstream)]),
          )),
        ];
        printRows(format, findings, COLUMNS);
        if (findings.some((finding) => !finding.ok)) process.exitCode = EXIT.needsPerson;
      }),
    );
}

type AppOf = Parameters<Parameters<typeof withApp>[1]>[1];

async function ticks(app: AppOf): Promise<Finding[]> {
  const wanted = [...app.pairs.values()].filter((pair) => pair.config.schedule).map((pair) => pair.name);
  const known = new Map((await app.queue.listTicks()).map((tick) => [tick.name, tick.next]));
  return wanted.map((name) => {
    const next = known.get(name);
    return {
      check: `schedule ${name}`,
      ok: next !== undefined,
      detail: next
        ? `next tick ${new Date(next).toISOString()}`
        : 'has no tick in the queue; a running worker makes it',
    };
  });
}

function clock(check: string, now: Parameters<typeof millisOf>[0]): Finding {
  const offMs = Math.round(millisOf(now) - Date.now());
  return { check, ok: Math.abs(offMs) <= CLOCK_MS, detail: `${offMs} ms against this machine` };
}

async function side(side: Side): Promise<Finding> {
  try {
    const { now, seesTransactions } = await side.clock(AbortSignal.timeout(10_000));
    const finding = clock(side.label, now);
    return {
      ...finding,
      detail: `${finding.detail}${seesTransactions ? '' : '; open transactions cannot be seen here'}`,
    };
  } catch (error) {
    if (!(error instanceof SideError)) throw error;
    return { check: side.label, ok: false, detail: error.message };
  }
}
