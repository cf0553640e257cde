import { DateTime } from 'luxon';
import { type GateTiming, spacing } from '../compensate/gate/watermark.ts';
import { addMillis, type Instant, millisOf } from '../reconcile/instant.ts';

/** What is to be sent to one target, and how fast that may go. */
export interface SendLoad {
  readonly target: string;
  readonly sends: number;
  /** Sends that stand before them at the same target. */
  readonly ahead: number;
  /** Sends per window; null is unlimited. */
  readonly limit: number | null;
  /** Why nothing is sent now; null when it is. */
  readonly stopped: string | null;
}

export interface Eta {
  /** When the last send is about done; null where nobody can know. */
  readonly at: Instant | null;
  /** For people: "4,213 sends at 100 a minute: done about 03:52 (Europe/Berlin)". */
  readonly text: string;
}

const DAY_MS = 86_400_000;

/** When sends are done that begin now, at the watermark of each target as it is now. The targets work side by side. */
export function etaOf(
  loads: readonly SendLoad[],
  at: { readonly now: Instant; readonly zone: string; readonly timing: GateTiming },
): Eta {
  const todo = loads.filter(({ sends }) => sends > 0);
  if (todo.length === 0) return { at: at.now, text: 'nothing to send' };
  const ends = todo.map((load) => ({ load, ms: lengthOf(load, at.timing) }));
  const total = count(todo.reduce((sum, { sends }) => sum + sends, 0));
  const stopped = todo.find((load) => load.stopped !== null);
  if (stopped !== undefined) {
    return { at: null, text: `${total}: nothing is sent to ${stopped.target} now: ${stopped.stopped}` };
  }
  const last = ends.reduce((a, b) => (b.ms > a.ms ? b : a));
  const pace = last.load.limit === null ? 'without a watermark' : `at ${last.load.limit} a minute`;
  const behind = last.load.ahead > 0 ? ` after ${number(last.load.ahead)} that wait already` : '';
  const which = todo.length > 1 ? ` to ${last.load.target}` : '';
  const end = addMillis(at.now, Math.ceil(last.ms));
  const when =
    last.load.limit === null ? 'as fast as the target answers' : `done about ${clock(end, at.now, at.zone)}`;
  return {
    at: last.load.limit === null ? null : end,
    text: `${total}${behind} ${pace}${which}: ${when}`,
  };
}

function lengthOf({ sends, ahead, limit }: SendLoad, timing: GateTiming): number {
  return limit === null || limit === 0 ? 0 : (sends + ahead) * spacing(limit, timing);
}

/** The local time, with its date when that is not today's or tomorrow early. */
function clock(end: Instant, now: Instant, zone: string): string {
  const local = DateTime.fromMillis(millisOf(end), { zone });
  const far = millisOf(end) - millisOf(now) >= DAY_MS / 2;
  return `${local.toFormat(far ? 'yyyy-MM-dd HH:mm' : 'HH:mm')} (${zone})`;
}

function count(sends: number): string {
  return `${number(sends)} ${sends === 1 ? 'send' : 'sends'}`;
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}
