import type { Command } from 'commander';
import type { StoredGates } from '../../config/stored-gates.ts';
import { EXIT, TrueupError } from '../../error.ts';
import { discardRun, readWatermark, setWatermark } from '../../jobs/operator.ts';
import type { Db } from '../../store/database.ts';
import { type GateStatus, maxSendsInWindow } from '../../store/gates.ts';
import { rowId } from '../../store/row-id.ts';
import { activeGates } from '../active-config.ts';
import { printObject } from '../output.ts';
import { reasonText } from '../reason.ts';
import { actor, withStoreAlone } from '../session.ts';
import { type WatermarkOptions, type WatermarkRequest, watermarkRequest } from '../watermark-request.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

export function registerTargets(program: Command): void {
  program
    .command('discard <run>')
    .description('ends a run that is held or not finished; its diffs stay open and are not repaired by it')
    .requiredOption('--reason <text>', 'why; kept in the audit', reasonText)
    .addHelpText('after', '\nExample:\n  trueup discard 12 --reason "the replica was behind"')
    .action((run: string, options: { reason: string }, command: Command) =>
      withStoreAlone(command, async ({ format }, { db }) => {
        const decision = { actor: actor(), reason: options.reason };
        if (!(await discardRun(db, rowId(run), decision))) {
          throw new TrueupError('TRU_NO_RUN', `there is no run ${run} that is not done`, {
            exit: EXIT.usage,
            hint: 'list them with: trueup runs',
          });
        }
        printObject(format, { discarded: run });
      }),
    );
  program
    .command('watermark <target> [n]')
    .description('shows the watermark of a target, or sets it for a while below the configured ceiling')
    .option('--for <duration>', 'how long the number holds; left out: until --clear')
    .option('--clear', 'back to the configured ceiling')
    .option('--reason <text>', 'why; kept in the audit', reasonText)
    .addHelpText('after', '\nExample:\n  trueup watermark gateway 50 --for 2h --reason "gateway is slow"')
    .action((target: string, n: string | undefined, options: WatermarkOptions, command: Command) => {
      const request = watermarkRequest(n, options);
      return withStoreAlone(command, async ({ local, format }, { db }) => {
        const gates = await activeGates(db, local);
        const status = await changeOrRead(db, gates, target, request);
        const maxSendsIn60s = await maxSendsInWindow(db, target, HOUR_MS, MINUTE_MS);
        printObject(format, { target, ...status, maxSendsIn60s });
      });
    });
}

function changeOrRead(
  db: Db,
  gates: StoredGates,
  target: string,
  request: WatermarkRequest,
): Promise<GateStatus> {
  if (request.kind === 'show') return readWatermark(db, gates, target);
  const override = request.kind === 'clear' ? null : { perMinute: request.perMinute, for: request.for };
  return setWatermark(db, gates, target, override, { actor: actor(), reason: request.reason });
}
