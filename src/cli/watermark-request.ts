import { parseDuration } from '../config/duration.ts';
import { EXIT, TrueupError } from '../error.ts';
import { wholeNumber } from './whole-number.ts';

export interface WatermarkOptions {
  readonly for?: string;
  readonly clear?: boolean;
  readonly reason?: string;
}

export type WatermarkRequest =
  | { readonly kind: 'show' }
  | { readonly kind: 'clear'; readonly reason: string }
  | {
      readonly kind: 'set';
      readonly perMinute: number;
      readonly for: string | null;
      readonly reason: string;
    };

/** What `trueup watermark TARGET …` asks for. Throws `TRU_USAGE` for words that contradict each other. */
export function watermarkRequest(n: string | undefined, options: WatermarkOptions): WatermarkRequest {
  const { clear, reason } = options;
  if (clear && (n !== undefined || options.for !== undefined))
    throw usage(
      '--clear takes no number and no --for',
      'give a number, or --clear to go back to the ceiling',
    );
  if (n === undefined && !clear) {
    if (options.for !== undefined)
      throw usage('--for needs a number', 'write: trueup watermark TARGET 50 --for 2h');
    return { kind: 'show' };
  }
  const perMinute = n === undefined ? 0 : wholeNumber(n, 'watermark');
  if (options.for !== undefined && !((parseDuration(options.for) ?? 0) > 0))
    throw usage(`--for "${options.for}" is no duration`, 'write 15m, 1h30m or PT15M');
  if (reason === undefined)
    throw usage('a changed watermark needs --reason', 'say why; it is kept in the audit');
  return clear ? { kind: 'clear', reason } : { kind: 'set', perMinute, for: options.for ?? null, reason };
}

function usage(message: string, hint: string): TrueupError {
  return new TrueupError('TRU_USAGE', message, { exit: EXIT.usage, hint });
}
