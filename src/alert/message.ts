import type { Instant } from '../reconcile/instant.ts';
import type { AlertDraft, AlertKind, AlertMessage, Condition, OpenAlert } from '../store/alert-state.ts';
import { cutText, oneLine } from './cut-text.ts';

export type { AlertMessage };

/** More of one sample than this helps nobody in a chat; the command shows the rest. */
const SAMPLE_BYTES = 300;
/** However long a key is, what is wrong with it is said too. */
const KEY_BYTES = 120;

/** The message for a condition that opened or is told again. `link` is the page's address from the config. */
export function openDraft(condition: Condition, at: Instant, link: string | null): AlertDraft {
  const { reconciliation, kind, severity, count, facts } = condition;
  return {
    reconciliation,
    kind,
    severity,
    status: 'open',
    title: WORDS[kind].open(reconciliation, count),
    count,
    oldest: facts.oldest,
    samples: facts.samples,
    dominantError: facts.dominantError,
    detail: facts.detail,
    link,
    command: WORDS[kind].command(condition),
    at,
  };
}

/** The message that closes an alert. */
export function recoveredDraft(alert: OpenAlert, at: Instant, link: string | null): AlertDraft {
  const { reconciliation, kind, severity } = alert;
  return {
    reconciliation,
    kind,
    severity,
    status: 'recovered',
    title: WORDS[kind].recovered(reconciliation),
    count: 0,
    oldest: alert.openedAt,
    samples: [],
    dominantError: null,
    detail: `${amount(alert.notifiedCount)} when last told`,
    link,
    command: null,
    at,
  };
}

/**
 * The message as text: title, count and oldest, then detail, most frequent error, samples and command, then the
 * link. In at most `bytes` bytes of UTF-8 after `encode`; when that is short, samples go first and the title, the
 * counts and the link stay. Every provider refuses a message that is too long, and the worst incident makes the
 * longest one.
 */
export function renderText(
  message: AlertMessage,
  { bytes, encode = (same) => same }: { bytes: number; encode?: (text: string) => string },
): string {
  const counts = countsLine(message);
  const tail = message.link === null ? [counts] : [counts, message.link];
  const fixed = tail.map(oneLine).map(encode);
  const title = cutText(oneLine(headline(message)), Math.max(0, bytes - sizeOf(fixed)), encode);
  const [shownCounts = '', ...link] = fixed;
  let room = bytes - sizeOf(fixed) - Buffer.byteLength(title);
  const middle: string[] = [];
  for (const line of middleLines(message)) {
    const cut = cutText(oneLine(line), room - 1, encode);
    if (cut === '' || room - 1 <= 0) break;
    middle.push(cut);
    room -= Buffer.byteLength(cut) + 1;
  }
  return cutBytes([title, shownCounts, ...middle, ...link].join('\n'), bytes);
}

/** Bytes of lines that each follow another one. */
function sizeOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
}

/** Only for a budget in which not even counts and link have room. */
function cutBytes(text: string, bytes: number): string {
  return Buffer.byteLength(text) <= bytes ? text : cutText(text, bytes);
}

function headline(message: AlertMessage): string {
  if (message.status === 'recovered') return `[recovered] ${message.title}`;
  return `[${message.severity === 'action' ? 'action needed' : 'warning'}] ${message.title}`;
}

function countsLine(message: AlertMessage): string {
  const since = message.status === 'recovered' ? 'open since' : 'oldest';
  const oldest =
    message.oldest === null ? '' : ` · ${since} ${message.oldest.slice(0, 19).replace('T', ' ')} UTC`;
  return `count ${amount(message.count)}${oldest}`;
}

function middleLines(message: AlertMessage): string[] {
  const { detail, dominantError, samples, command, count } = message;
  const lines: string[] = [];
  if (detail !== null) lines.push(detail);
  if (dominantError !== null)
    lines.push(
      `most frequent: ${dominantError.code} (${amount(dominantError.count)} of ${ofHowMany(dominantError.of, count)})`,
    );
  if (command !== null) lines.push(`see: ${command}`);
  for (const { key, text } of samples)
    lines.push(cutText(`- ${cutText(oneLine(key), KEY_BYTES)}: ${oneLine(text)}`, SAMPLE_BYTES));
  return lines;
}

/** A message written by an earlier release counted all of them. */
function ofHowMany(of: number | undefined, count: number): string {
  return of === undefined || of >= count ? amount(count) : `the oldest ${amount(of)}`;
}

/** 2000 as `2,000`. */
function amount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

function plural(count: number, one: string, many: string): string {
  return `${amount(count)} ${count === 1 ? one : many}`;
}

interface Words {
  readonly open: (subject: string, count: number) => string;
  readonly recovered: (subject: string) => string;
  readonly command: (condition: Condition) => string | null;
}

const WORDS: Readonly<Record<AlertKind, Words>> = {
  diffs: {
    open: (name, count) => `${name}: ${plural(count, 'diff', 'diffs')} found`,
    recovered: (name) => `${name}: no diff is open any more`,
    command: ({ reconciliation }) => `trueup diffs --where reconciliation=${reconciliation}`,
  },
  escalated: {
    open: (name, count) => `${name}: ${plural(count, 'diff needs', 'diffs need')} a person`,
    recovered: (name) => `${name}: no diff needs a person any more`,
    command: ({ reconciliation, facts }) =>
      facts.samples[0]?.id
        ? `trueup diff ${facts.samples[0].id}`
        : `trueup diffs --where reconciliation=${reconciliation}`,
  },
  'run-held': {
    open: (name, count) => `${name}: ${plural(count, 'run is', 'runs are')} on hold, release or discard`,
    recovered: (name) => `${name}: no run is on hold any more`,
    command: ({ reconciliation }) => `trueup runs ${reconciliation}`,
  },
  'run-incomplete': {
    open: (name, count) =>
      count === 1
        ? `${name}: the latest run is incomplete`
        : `${name}: the latest ${amount(count)} runs are incomplete`,
    recovered: (name) => `${name}: a run was complete again`,
    command: ({ reconciliation }) => `trueup runs ${reconciliation}`,
  },
  'replay-stalled': {
    open: (name, count) =>
      `${name}: ${plural(count, 'repair waits', 'repairs wait')} for a target that stays down`,
    recovered: (name) => `${name}: no repair waits for a target that is down`,
    command: ({ reconciliation }) => `trueup diffs --where reconciliation=${reconciliation}`,
  },
  'replay-held': {
    open: (subject) => (subject === 'store' ? 'all sends are on hold' : `${subject}: sends are on hold`),
    recovered: (subject) => (subject === 'store' ? 'sends go on' : `${subject}: sends go on`),
    command: ({ reconciliation }) => `trueup release ${reconciliation} --reason "..."`,
  },
  'holdback-capped': {
    open: (name) => `${name}: a transaction at the source stays open for longer than maxHoldback`,
    recovered: (name) => `${name}: no transaction holds the window back for too long any more`,
    command: ({ reconciliation }) => `trueup runs ${reconciliation}`,
  },
  'channel-failing': {
    open: (channel, count) =>
      `alert channel ${channel}: ${plural(count, 'message', 'messages')} not delivered`,
    recovered: (channel) => `alert channel ${channel}: delivers again`,
    command: () => null,
  },
};
