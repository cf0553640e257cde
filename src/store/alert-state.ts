import type { Instant } from '../reconcile/instant.ts';

/**
 * What the store holds about alerts, as plain data. An alert is a state of one subject and kind, never an event:
 * 2,000 failures of one reconciliation are one alert with a count.
 */
export const ALERT_KINDS = [
  /** Differences were found; repairs run where they are configured. */
  'diffs',
  /** Repairs ended at a person. */
  'escalated',
  /** A guard stopped a run; a person releases or discards it. */
  'run-held',
  /** The latest run could not read or decide everything. */
  'run-incomplete',
  /** Repairs wait for a target that stays down. */
  'replay-stalled',
  /** Sends are stopped by a person or after a restore. Its subject is the gate, or `store` for all of them. */
  'replay-held',
  /** A transaction at the source is open for longer than a window may wait for it (rule 5.8). */
  'holdback-capped',
  /** A channel does not take messages. Its subject is the channel, not a reconciliation. */
  'channel-failing',
] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

/** `warning`: it is being repaired and watched. `action`: a person is needed. */
export type AlertSeverity = 'warning' | 'action';

export const SEVERITY: Readonly<Record<AlertKind, AlertSeverity>> = {
  diffs: 'warning',
  escalated: 'action',
  'run-held': 'action',
  'run-incomplete': 'action',
  'replay-stalled': 'warning',
  'replay-held': 'action',
  'holdback-capped': 'action',
  'channel-failing': 'action',
};

export interface AlertSample {
  /** The business key as a person writes it, a run, or the title of an undelivered message. */
  readonly key: string;
  /** The real error text of the last attempt, a reason, or the kind of the difference. */
  readonly text: string;
  /** Id of the diff or run, for the command line; null where there is none. */
  readonly id: string | null;
}

interface AlertFacts {
  /** When the oldest of the counted things was first seen. */
  readonly oldest: Instant | null;
  /** At most three. */
  readonly samples: readonly AlertSample[];
  /** The error code that most of those looked at share, how many do, and of how many. */
  readonly dominantError: { readonly code: string; readonly count: number; readonly of: number } | null;
  /** One more sentence, or null. */
  readonly detail: string | null;
}

/** Something that is wrong now, counted in the store. At most one per (reconciliation, kind). */
export interface CountedCondition {
  /** The reconciliation; of `channel-failing` the channel, of `replay-held` the gate. */
  readonly reconciliation: string;
  readonly kind: AlertKind;
  readonly severity: AlertSeverity;
  readonly count: number;
}

/** With what a message says about it. */
export interface Condition extends CountedCondition {
  readonly facts: AlertFacts;
}

/** An alert that is open, as last told. */
export interface OpenAlert {
  readonly id: string;
  readonly reconciliation: string;
  readonly kind: AlertKind;
  readonly severity: AlertSeverity;
  readonly openedAt: Instant;
  readonly notifiedAt: Instant | null;
  /** The count when it was last told. */
  readonly notifiedCount: number;
}

/** What is told, before a channel gives it its form. */
export interface AlertMessage {
  /** The same over all retries and all channels; a receiver drops repeats by it. */
  readonly id: string;
  readonly alertId: string;
  readonly reconciliation: string;
  /** `digest`: several messages that had to be merged to keep a channel's rate. */
  readonly kind: AlertKind | 'digest';
  readonly severity: AlertSeverity;
  readonly status: 'open' | 'recovered';
  readonly title: string;
  readonly count: number;
  readonly oldest: Instant | null;
  readonly samples: readonly AlertSample[];
  readonly dominantError: AlertFacts['dominantError'];
  readonly detail: string | null;
  /** Address of the page, from the config. */
  readonly link: string | null;
  /** What to type to see more. */
  readonly command: string | null;
  readonly at: Instant;
}

/** A message without the names that only the store can give it. */
export type AlertDraft = Omit<AlertMessage, 'id' | 'alertId'>;

/** A draft and the channels it goes to; no channel means that it is only kept as state. */
export interface Outgoing {
  readonly draft: AlertDraft;
  readonly channels: readonly string[];
}

/** What one commit changes: alerts that open, that are told again, and that end. */
export interface AlertChanges {
  readonly open: readonly (Outgoing & { readonly condition: Condition })[];
  readonly notify: readonly (Outgoing & { readonly condition: Condition; readonly alert: OpenAlert })[];
  readonly recover: readonly (Outgoing & { readonly alert: OpenAlert })[];
}
