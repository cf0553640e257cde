import { DateTime } from 'luxon';
import { parseDuration } from '../config/duration.ts';
import { EXIT, TrueupError } from '../error.ts';
import { type Instant, parseInstant } from '../reconcile/instant.ts';
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
 * and `to` are taken as they are, and such a run moves the coverage only as far as a scheduled one may. What was
 * written wrongly is refused before the source is asked.
 */
export async function adhocWindow(
  pair: Pair,
  request: AdhocRequest,
  signal: AbortSignal,
): Promise<AdhocWindow> {
  const asked = readRequest(request, pair.zone);
  const clock = await pair.source.clock(signal);
  const bound = scheduledWindow({
    policy: {
      ...pair.config.window,
      day: undefined,
      lookback: asked.kind === 'last' ? asked.lengthMs : MINUTE_MS,
    },
    coverage: null,
    sourceNow: clock.now,
    oldestOpen: clock.oldestOpen,
    seesTransactions: clock.seesTransactions,
    zone: pair.zone,
  }).window;
  if (asked.kind === 'last') return { window: bound, movesCoverage: true };
  const to = asked.to ?? bound.to;
  if (to <= asked.from) {
    throw usage(
      `the window begins (${asked.from}) after what can be read now (${to}): --to was left out`,
      'give an earlier --from',
    );
  }
  return { window: { from: asked.from, to }, movesCoverage: to <= bound.to };
}

const MINUTE_MS = 60_000;

type Asked =
  | { readonly kind: 'last'; readonly lengthMs: number }
  | { readonly kind: 'between'; readonly from: Instant; readonly to: Instant | null };

/** Reads what was written, in the zone of the configuration. Throws `TRU_BAD_WINDOW` for what is no window. */
export function readRequest(request: AdhocRequest, zone: string): Asked {
  if (request.last !== undefined && (request.from ?? request.to) !== undefined)
    throw usage('--last and --from/--to say the window twice', 'give one of the two');
  if (request.last !== undefined) return { kind: 'last', lengthMs: lengthOf(request.last) };
  if (request.from === undefined)
    throw usage('--from or --last is missing', 'write --last 3h, or --from and --to');
  const from = parseLocal(request.from, zone);
  if (request.to === undefined) return { kind: 'between', from, to: null };
  const to = parseLocal(request.to, zone);
  if (to === from) throw usage(`the window is empty: it begins and ends at ${from}`, 'give a later --to');
  if (to < from)
    throw usage(`the window ends (${to}) before it begins (${from})`, 'exchange --from and --to');
  return { kind: 'between', from, to };
}

function lengthOf(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0)
    throw usage(`--last "${text}" is no length of time`, 'write --last 3h, 90m or PT3H');
  if (ms > LONGEST_MS) throw usage(`--last ${text} is longer than ten years`, 'give --from and --to instead');
  return ms;
}

/** A slip of the finger (3000d for 30d) would read everything there is. */
const LONGEST_MS = 3660 * 86_400_000;
const LOCAL = /^(\d{4}-\d{2}-\d{2})(?:[T ]((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d{1,6}))?)?)?$/;

/** A time with an offset, or a local time of the zone; one that does not exist or exists twice is asked back. */
export function parseLocal(text: string, zone: string): Instant {
  const exact = parseInstant(text.trim());
  if (exact !== undefined && offsetHours(text) <= 14) return exact;
  const [, date, time = '00:00', second = '00', fraction = ''] = LOCAL.exec(text.trim()) ?? [];
  const written = `${date}T${time}:${second}`;
  const local = DateTime.fromISO(written, { zone });
  if (date === undefined || !local.isValid)
    throw usage(
      `"${text}" is no time`,
      'write 2026-11-30, 2026-11-30T02:00 (local), or 2026-11-30T02:00+08:00',
    );
  if (local.toFormat("yyyy-MM-dd'T'HH:mm:ss") !== written) {
    throw usage(
      `${text} does not exist in ${zone}: the clocks skip it`,
      `give the offset: ${local.toISO({ suppressMilliseconds: true })} is the same moment after the change`,
    );
  }
  const passes = local.getPossibleOffsets();
  if (passes.length > 1) {
    throw usage(
      `${text} exists twice in ${zone}`,
      `give the offset: ${passes.map((pass) => pass.toISO({ suppressMilliseconds: true })).join(' or ')}`,
    );
  }
  const utc = local.toUTC().toFormat("yyyy-MM-dd'T'HH:mm:ss");
  const instant = parseInstant(`${utc}.${fraction.padEnd(6, '0')}Z`);
  if (instant === undefined) throw usage(`"${text}" is no time`, 'write a year from 0001 to 9999');
  return instant;
}

/** No place on earth is further from UTC than 14 hours. */
function offsetHours(text: string): number {
  return Number(/[+-](\d{2})(?::?\d{2})?$/.exec(text.trim())?.[1] ?? 0);
}

function usage(message: string, hint: string): TrueupError {
  return new TrueupError('TRU_BAD_WINDOW', message, { exit: EXIT.usage, hint });
}
