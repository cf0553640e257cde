import { CronExpressionParser } from 'cron-parser';
import { DateTime } from 'luxon';
import type { Schedule } from '../config/schema.ts';
import { type Instant, instantFromMillis } from '../reconcile/instant.ts';

/**
 * When a schedule is due, as a pure function of wall time and zone. The library only reads the pattern; the mapping
 * from wall time to instants is ours, because cron-parser drops the daily run where the missing hour is midnight
 * (Cairo, Beirut, Havana) and shifts it elsewhere. Rules: `gap` says what a local time that does not exist becomes,
 * `overlap` which pass of a local time that exists twice is meant; patterns whose hour is `*` or a step follow real
 * time instead, so that "every 15 minutes" never pauses and never doubles.
 */
export interface SlotTime {
  /** Nominal wall time, `2026-03-29T02:30`. */
  readonly localTime: string;
  /** 2 for the second pass of a local time that exists twice, else 1. */
  readonly occurrence: 1 | 2;
  readonly nominal: Instant;
}

interface Pattern {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  readonly weekdays: ReadonlySet<number>;
  readonly anyDay: boolean;
  readonly anyWeekday: boolean;
  readonly followsRealTime: boolean;
}

/** A pattern that never matches (30 February) is given up after this many days: leap years repeat within 8 years. */
const MAX_DAYS = 366 * 9;

type Rules = Pick<Schedule, 'cron' | 'gap' | 'overlap'>;

/** The first slot after an instant; `undefined` when the pattern never matches. */
export function nextSlot(schedule: Rules, zone: string, afterMs: number): SlotTime | undefined {
  for (const slot of slotsAfter(schedule, zone, afterMs)) return slot;
  return undefined;
}

/** All slots in `(after, until]`, at most `limit`. */
export function slotsBetween(
  schedule: Rules,
  zone: string,
  afterMs: number,
  untilMs: number,
  limit: number,
): SlotTime[] {
  const slots: SlotTime[] = [];
  for (const slot of slotsAfter(schedule, zone, afterMs)) {
    if (Date.parse(slot.nominal) > untilMs || slots.length >= limit) break;
    slots.push(slot);
  }
  return slots;
}

function* slotsAfter(schedule: Rules, zone: string, afterMs: number): Generator<SlotTime> {
  const pattern = readPattern(schedule.cron);
  // One day back, since a gap can push yesterday's last slot over midnight.
  let day = DateTime.fromMillis(afterMs, { zone }).startOf('day').minus({ days: 1 });
  let held: SlotTime[] = [];
  for (let count = 0; count < MAX_DAYS; count++) {
    const slots = [...held, ...slotsOfDay(pattern, schedule, day)].sort(byTime);
    day = day.plus({ days: 1 });
    // What lies past this day's end could still be overtaken by the next day's first slot.
    const end = instantFromMillis(day.toMillis());
    held = slots.filter((slot) => slot.nominal >= end);
    for (const slot of slots) {
      if (slot.nominal < end && Date.parse(slot.nominal) > afterMs) yield slot;
    }
    if (slots.length > 0) count = 0;
  }
}

function byTime(a: SlotTime, b: SlotTime): number {
  if (a.nominal !== b.nominal) return a.nominal < b.nominal ? -1 : 1;
  return a.localTime < b.localTime ? -1 : 1;
}

function readPattern(cron: string): Pattern {
  const { fields } = CronExpressionParser.parse(cron);
  const hourField = cron.trim().split(/\s+/)[1] ?? '';
  return {
    minutes: fields.minute.values as number[],
    hours: fields.hour.values as number[],
    days: new Set(fields.dayOfMonth.values as number[]),
    months: new Set(fields.month.values as number[]),
    weekdays: new Set((fields.dayOfWeek.values as number[]).map((weekday) => weekday % 7)),
    anyDay: fields.dayOfMonth.isWildcard,
    anyWeekday: fields.dayOfWeek.isWildcard,
    followsRealTime: hourField.includes('*'),
  };
}

function slotsOfDay(pattern: Pattern, rules: Rules, day: DateTime): SlotTime[] {
  if (!matchesDay(pattern, day)) return [];
  return pattern.hours.flatMap((hour) =>
    pattern.minutes.flatMap((minute) => slotsOfWallTime(pattern, rules, day.set({ hour: 12 }), hour, minute)),
  );
}

/** Cron's own rule: when both day fields are restricted, either one is enough. */
function matchesDay(pattern: Pattern, day: DateTime): boolean {
  if (!pattern.months.has(day.month)) return false;
  const byDate = pattern.days.has(day.day);
  const byWeekday = pattern.weekdays.has(day.weekday % 7);
  if (pattern.anyDay) return byWeekday;
  if (pattern.anyWeekday) return byDate;
  return byDate || byWeekday;
}

function slotsOfWallTime(
  pattern: Pattern,
  rules: Rules,
  day: DateTime,
  hour: number,
  minute: number,
): SlotTime[] {
  const { year, month, day: date } = day;
  const made = DateTime.fromObject({ year, month, day: date, hour, minute }, { zone: day.zone });
  const localTime = `${day.toFormat('yyyy-MM-dd')}T${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`;
  const slot = (at: DateTime, occurrence: 1 | 2): SlotTime => ({
    localTime,
    occurrence,
    nominal: instantFromMillis(at.toMillis()),
  });
  if (made.hour !== hour || made.minute !== minute || made.day !== date) {
    if (pattern.followsRealTime || rules.gap === 'skip') return [];
    return [slot(endOfGap(made), 1)];
  }
  const passes = made.getPossibleOffsets().sort((a, b) => a.toMillis() - b.toMillis());
  const [first = made, second] = passes;
  if (!second) return [slot(first, 1)];
  if (pattern.followsRealTime || rules.overlap === 'both') return [slot(first, 1), slot(second, 2)];
  return rules.overlap === 'first' ? [slot(first, 1)] : [slot(second, 2)];
}

/** The first instant after the gap near `at`: the moment of the change of offset, found by halving. */
function endOfGap(at: DateTime): DateTime {
  let low = at.minus({ hours: 26 });
  let high = at.plus({ hours: 26 });
  while (high.toMillis() - low.toMillis() > 1) {
    const middle = DateTime.fromMillis(Math.floor((low.toMillis() + high.toMillis()) / 2), { zone: at.zone });
    if (middle.offset === low.offset) low = middle;
    else high = middle;
  }
  return high;
}
