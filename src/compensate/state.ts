/**
 * The life of a compensation, as one pure function. The table below is the only place that says which change of
 * state is legal; the database checks the same table again (`compensation_transition`), and `docs/architecture.md`
 * prints it. Rule 6.7: no event leads to `escalated` while attempts are left or the target is merely down; that is
 * why `exhausted`, `refused`, `give-up`, `unresolved` and `not-taken` are separate events with their own conditions,
 * decided in `retry/decide.ts` and `settle.ts` and nowhere else.
 */

export const STATES = [
  'planned',
  'held',
  'ready',
  'queued',
  'sending',
  'retrying',
  'deferred',
  'unknown',
  'applied',
  'verified',
  'healed',
  'cancelled',
  'superseded',
  'escalated',
] as const;
export type StateName = (typeof STATES)[number];

export const ESCALATION_REASONS = [
  /** The target refused the record itself; repeating cannot help. */
  'refused',
  /** Every allowed attempt failed. */
  'exhausted',
  /** The target stayed down for longer than `giveUpAfter`. */
  'gave-up',
  /** An ambiguous outcome that no look could settle and no rule allows to repeat (rule 6.10). */
  'unresolved',
  /** No look could decide for `giveUpAfter`: a side cannot be read, or the records cannot be compared. */
  'unreadable',
  /** The target said yes, and it never became visible (rule 6.11). */
  'not-taken',
  /** The same diff came back after its repair (rule 6.4). */
  'flapping',
  /** The same idempotency key with another payload (rule 6.3). */
  'conflict',
  /** The configuration no longer describes this repair. */
  'unplannable',
] as const;
export type EscalationReason = (typeof ESCALATION_REASONS)[number];

export type State =
  | { readonly name: Exclude<StateName, 'escalated'> }
  | { readonly name: 'escalated'; readonly reason: EscalationReason };

export type CompensationEvent =
  /** First in line for its business key. */
  | { readonly type: 'turn' }
  | { readonly type: 'hold' }
  | { readonly type: 'release' }
  /** Moved from the ledger to the queue. */
  | { readonly type: 'dispatch' }
  /** Back to the ledger: the job was lost, or no slot is near. */
  | { readonly type: 'put-back' }
  /** Attempt committed, slot granted. */
  | { readonly type: 'send' }
  /** The slot passed unused; surely nothing was sent. */
  | { readonly type: 'slot-dropped' }
  /** Before a send: the sides agree. */
  | { readonly type: 'look-equal' }
  /** Before a send: the source changed, so another payload is needed. */
  | { readonly type: 'look-changed' }
  /** The target said yes, or "accepted, not final". */
  | { readonly type: 'accepted' }
  | { readonly type: 'retry' }
  /** The target is down; not the record's fault and not counted. */
  | { readonly type: 'defer' }
  /** May or may not have happened: no answer, or a lost lease. */
  | { readonly type: 'ambiguous' }
  /** An ambiguous send that rule 6.10 allows to repeat. */
  | { readonly type: 'resend' }
  /** After a send: the sides agree. */
  | { readonly type: 'seen' }
  /** Accepted, not visible in time, and the action says `onNotTaken: resend`. */
  | { readonly type: 'replaced' }
  | { readonly type: 'cancel' }
  | { readonly type: 'escalate'; readonly reason: EscalationReason };

type EventType = CompensationEvent['type'];

/** State x event -> state. An absent cell is an illegal transition. */
export const TRANSITIONS: { readonly [S in StateName]: { readonly [E in EventType]?: StateName } } = {
  planned: {
    turn: 'ready',
    hold: 'held',
    cancel: 'cancelled',
    'look-equal': 'healed',
    'look-changed': 'superseded',
    escalate: 'escalated',
  },
  held: { release: 'planned', cancel: 'cancelled', 'look-equal': 'healed', 'look-changed': 'superseded' },
  ready: {
    dispatch: 'queued',
    hold: 'held',
    cancel: 'cancelled',
    'look-equal': 'healed',
    'look-changed': 'superseded',
    escalate: 'escalated',
  },
  queued: {
    'put-back': 'ready',
    send: 'sending',
    hold: 'held',
    cancel: 'cancelled',
    defer: 'deferred',
    'look-equal': 'healed',
    'look-changed': 'superseded',
    escalate: 'escalated',
  },
  sending: {
    'slot-dropped': 'ready',
    accepted: 'applied',
    retry: 'retrying',
    defer: 'deferred',
    ambiguous: 'unknown',
    escalate: 'escalated',
  },
  retrying: {
    dispatch: 'queued',
    hold: 'held',
    cancel: 'cancelled',
    'look-equal': 'healed',
    'look-changed': 'superseded',
    escalate: 'escalated',
  },
  deferred: {
    dispatch: 'queued',
    hold: 'held',
    cancel: 'cancelled',
    'look-equal': 'healed',
    'look-changed': 'superseded',
    escalate: 'escalated',
  },
  unknown: { seen: 'verified', resend: 'ready', escalate: 'escalated' },
  applied: { seen: 'verified', replaced: 'superseded', escalate: 'escalated' },
  verified: {},
  healed: {},
  cancelled: {},
  superseded: {},
  escalated: {},
};

/** Which reasons an event may carry from a state: a person is reached only from where retries are really spent. */
export const ESCALATES: { readonly [S in StateName]?: readonly EscalationReason[] } = {
  planned: ['flapping', 'conflict', 'unplannable'],
  ready: ['gave-up'],
  queued: ['unplannable', 'unresolved', 'unreadable'],
  sending: ['refused', 'exhausted', 'conflict'],
  retrying: ['gave-up'],
  deferred: ['gave-up'],
  unknown: ['unresolved', 'unreadable', 'unplannable'],
  applied: ['not-taken', 'unreadable', 'unplannable'],
};

export class IllegalTransition extends Error {
  override readonly name = 'IllegalTransition';
  readonly code = 'TRU_ILLEGAL_TRANSITION';
  readonly state: StateName;
  readonly event: EventType;

  constructor(state: StateName, event: EventType, detail = '') {
    super(`a compensation that is ${state} cannot take "${event}"${detail}`);
    this.state = state;
    this.event = event;
  }
}

/** The state after an event. Throws `IllegalTransition` where the table has no cell. */
export function transition(state: StateName, event: CompensationEvent): State {
  const next = TRANSITIONS[state][event.type];
  if (next === undefined) throw new IllegalTransition(state, event.type);
  if (event.type !== 'escalate') return { name: next as Exclude<StateName, 'escalated'> };
  if (!ESCALATES[state]?.includes(event.reason))
    throw new IllegalTransition(state, event.type, ` (${event.reason})`);
  return { name: 'escalated', reason: event.reason };
}

export function isTerminal(state: StateName): boolean {
  return Object.keys(TRANSITIONS[state]).length === 0;
}
