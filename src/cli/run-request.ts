import { parseDuration } from '../config/duration.ts';
import { knownNames } from '../config/known-names.ts';
import { EXIT, TrueupError } from '../error.ts';
import type { RunMode } from '../store/runs.ts';
import { wholeNumber } from './whole-number.ts';

/** The options of `trueup run` as they were written. */
export interface RunOptions {
  readonly last?: string;
  readonly from?: string;
  readonly to?: string;
  readonly mode?: string;
  readonly watermark?: string;
  readonly plan?: string;
  readonly yes?: boolean;
  readonly wait?: boolean;
  readonly waitFor: string;
  readonly detach?: boolean;
  readonly failOnDiff?: boolean;
}

interface Common {
  /** The run's own ceiling, in sends a minute. */
  readonly watermark: number | null;
  readonly end: 'here' | 'wait' | 'detach';
  /** How long to wait while nothing moves. */
  readonly waitForMs: number;
  readonly failOnDiff: boolean;
}

export interface WindowRequest extends Common {
  readonly kind: 'window';
  readonly names: readonly string[];
  readonly mode: RunMode;
  readonly window: { readonly last?: string; readonly from?: string; readonly to?: string };
}

export interface PlanRequest extends Common {
  readonly kind: 'plan';
  readonly id: string;
  readonly yes: boolean;
}

const MODES: readonly RunMode[] = ['check', 'plan', 'compensate'];

/** What the words of a command ask for. Throws `TRU_USAGE` for words that contradict each other or mean nothing. */
export function runRequest(names: readonly string[], options: RunOptions): WindowRequest | PlanRequest {
  const { last, from, to, plan } = options;
  const common: Common = {
    watermark: options.watermark === undefined ? null : wholeNumber(options.watermark, '--watermark'),
    end: endOf(options),
    waitForMs: lengthOf(options.waitFor, '--wait-for'),
    failOnDiff: options.failOnDiff ?? false,
  };
  if (plan !== undefined) {
    const other = names[0] ?? ((last ?? from ?? to) ? 'a window' : options.mode && `--mode ${options.mode}`);
    if (other !== undefined)
      throw usage(
        `a plan has its reconciliation and window already; leave out ${other}`,
        `write: trueup run --plan ${plan}`,
      );
    return { ...common, kind: 'plan', id: plan, yes: options.yes ?? false };
  }
  if (names.length === 0) throw usage('say which reconciliation to run', 'write: trueup run NAME --last 3h');
  if (options.yes) throw usage('--yes is for --plan', 'a run over a window asks nothing');
  const mode = modeOf(options.mode);
  if (mode === 'check' && common.watermark !== null)
    throw usage(
      '--watermark is for runs that send: mode check sends nothing',
      'add --mode compensate, or --mode plan',
    );
  if (last !== undefined && (from ?? to) !== undefined)
    throw usage('--last and --from/--to say the window twice', 'give one of the two');
  if (last === undefined && from === undefined)
    throw usage('--from or --last is missing', 'write --last 3h, or --from and --to');
  const window = {
    ...(last === undefined ? {} : { last }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  };
  return { ...common, kind: 'window', names: [...new Set(names)], mode, window };
}

function endOf(options: RunOptions): Common['end'] {
  if (options.wait && options.detach)
    throw usage(
      '--wait and --detach contradict each other',
      '--wait follows the run, --detach leaves it to the server',
    );
  if (options.detach) return 'detach';
  return options.wait ? 'wait' : 'here';
}

function modeOf(text: string | undefined): RunMode {
  if (text === undefined) return 'check';
  const mode = MODES.find((known) => known === text);
  if (mode !== undefined) return mode;
  throw usage(`there is no mode "${text}"`, `${knownNames(text, MODES, 'modes')}`);
}

function lengthOf(text: string, option: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms > 0) return ms;
  throw usage(`${option} "${text}" is no length of time`, `write ${option} 30m, 90s or PT30M`);
}

function usage(message: string, hint: string): TrueupError {
  return new TrueupError('TRU_USAGE', message, { exit: EXIT.usage, hint });
}
