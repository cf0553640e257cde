import { DateTime } from 'luxon';
import { parseDuration } from '../config/duration.ts';
import { EXIT, TrueupError } from '../error.ts';
import { addMillis, type Instant, instantFromMillis, parseInstant } from '../reconcile/instant.ts';
import type { Window } from '../reconcile/record.ts';
import { scheduledWindow } from '../reconcile/window.ts';
import type { Pair } from './pair.ts';

export interface AdhocRequest {
  readonly last?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

export interface AdhocWindow {
  readonly window: Window;
  /** False when the window reaches into times that open transactions or `settle` still guard (rule 5.8). */
  readonly movesCoverage: boolean;
}

/**
 * The window that a person asked for, on the source's own clock. `last` ends where a scheduled run would end; `from`
 * and `to` are taken as they are, and such a run moves the coverage only as far as a scheduled one may.
 */
export async function adhocWindow(
  pair: Pair,
  request: AdhocRequest,
  signal: AbortSignal,
): Promise<AdhocWindow> {
  const clock = await pair.source.clock(signal);
  const bound = scheduledWindow({
    policy: { ...pair.config.window, day: undefined, lookback: lengthOf(request.last ?? '1m') },
    coverage: null,
    sourceNow: clock.now,
    oldestOpen: clock.oldestOpen,
    seesTransactions: clock.seesTransactions,
    zone: pair.zone,
  }).window;
  if (request.last !== undefined) return { window: bound, movesCoverage: true };
  if (request.from === undefined)
    throw usage('--from or --last is missing', 'write --last 3h, or --from and --to');
  const from = parseLocal(request.from, pair.zone);
  const to = request.to === undefined ? bound.to : parseLocal(request.to, pair.zone);
  if (to <= from)
    throw usage(`the window ends (${to}) before it begins (${from})`, 'exchange --from and --to');
  return { window: { from, to }, movesCoverage: to <= bound.to };
}

function lengthOf(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0)
    throw usage(`"${text}" is no length of time`, 'write --last 3h, 90m or PT3H');
  return ms;
}

/** A time with an offset, or a local time of the zone; one that does not exist or exists twice is asked back. */
export function parseLocal(text: string, zone: string): Instant {
  const exact = parseInstant(text);
  if (exact !== undefined) return exact;
  const local = DateTime.fromISO(text.replace(' ', 'T'), { zone });
  if (!local.isValid)
    throw usage(`"${text}" is no time`, 'write 2026-11-30T02:00 (local), or 2026-11-30T02:00+08:00');
  if (
    !text
      .replace(' ', 'T')
      .startsWith(local.toFormat(text.length <= 10 ? 'yyyy-MM-dd' : "yyyy-MM-dd'T'HH:mm"))
  ) {
    throw usage(
      `${text} does not exist in ${zone}: the clocks skip it`,
      'give the offset, such as 2026-03-29T03:00+02:00',
    );
  }
  const passes = local.getPossibleOffsets();
  if (passes.length > 1) {
    throw usage(
      `${text} exists twice in ${zone}`,
      `give the offset: ${passes.map((pass) => pass.toISO({ suppressMilliseconds: true })).join(' or ')}`,
    );
  }
  return addMillis(instantFromMillis(0), local.toMillis());
}

function usage(message: string, hint: string): TrueupError {
  return new TrueupError('TRU_BAD_WINDOW', message, { exit: EXIT.usage, hint });
}
