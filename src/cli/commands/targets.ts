import type { Command } from 'commander';
import { EXIT, TrueupError } from '../../error.ts';
import { discardRun, readWatermark, setWatermark } from '../../jobs/operator.ts';
import { maxSendsInWindow } from '../../store/gates.ts';
import { rowId } from '../../store/row-id.ts';
import { printObject } from '../output.ts';
import { actor, withStore } from '../session.ts';
import { wholeNumber } from './runs.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

export function registerTargets(program: Command): void {
  program
    .command('discard <run>')
    .description('ends a run that is held or not finished; its diffs stay open and are not repaired by it')
    .requiredOption('--reason <text>', 'why; kept in the audit')
    .addHelpText('after', '\nExample:\n  trueup discard 12 --reason "the replica was behind"')
    .action((run: string, options: { reason: string }, command: Command) =>
      withStore(command, async ({ format }, { db }) => {
        const decision = { actor: actor(), reason: options.reason };
        if (!(await discardRun(db, rowId(run), decision))) {
          throw new TrueupError('TRU_NO_RUN', `there is no run ${run} that is not done`, {
            exit: EXIT.usage,
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
    .option('--reason <text>', 'why; kept in the audit')
    .addHelpText('after', '\nExample:\n  trueup watermark gateway 50 --for 2h --reason "gateway is slow"')
    .action((target: string, n: string | undefined, options: WatermarkOptions, command: Command) =>
      withStore(command, async ({ loaded, format }, { db }) => {
        const status = await changeOrRead(db, loaded.config, target, n, options);
        const maxSendsIn60s = await maxSendsInWindow(db, target, HOUR_MS, MINUTE_MS);
        printObject(format, { target, ...status, maxSendsIn60s });
      }),
    );
}

interface WatermarkOptions {
  readonly for?: string;
  readonly clear?: boolean;
  readonly reason?: string;
}

type WatermarkArguments = Parameters<typeof readWatermark>;

async function changeOrRead(
  db: WatermarkArguments[0],
  config: WatermarkArguments[1],
  target: string,
  n: string | undefined,
  options: WatermarkOptions,
) {
  if (n === undefined && !options.clear) return readWatermark(db, config, target);
  if (options.reason === undefined) {
    throw new TrueupError('TRU_USAGE', 'a changed watermark needs --reason', { exit: EXIT.usage });
  }
  const override = options.clear
    ? null
    : { perMinute: wholeNumber(n ?? '', 'watermark'), for: options.for ?? null };
  return setWatermark(db, config, target, override, { actor: actor(), reason: options.reason });
}
