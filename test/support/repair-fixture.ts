import type { Outcome, Sender } from '../../src/compensate/action.ts';
import { type GateTiming, MINUTE } from '../../src/compensate/gate/watermark.ts';
import { planCompensation } from '../../src/compensate/plan.ts';
import { type ConfigInput, configSchema, type Target } from '../../src/config/schema.ts';
import { type Look, LookBatch } from '../../src/jobs/look-batch.ts';
import { Paces } from '../../src/jobs/pace.ts';
import type { Pair } from '../../src/jobs/pair.ts';
import type { EndedByLook, RepairRoute, SendDeps } from '../../src/jobs/run-compensation.ts';
import { TIMES } from '../../src/jobs/times.ts';
import { Turns } from '../../src/jobs/turns.ts';
import { createLogger } from '../../src/observe/logger.ts';
import { lookBoth } from '../../src/reconcile/look.ts';
import { type Key, keyText, type SideRecord } from '../../src/reconcile/record.ts';
import { SideError } from '../../src/reconcile/side.ts';
import { insertCompensations } from '../../src/store/compensations.ts';
import { type Db, only, storeClock } from '../../src/store/database.ts';
import { ArraySide } from './array-side.ts';
import { record } from './records.ts';

/** A side that can be made unreadable. */
export class UnsteadySide extends ArraySide {
  unreadable = false;

  override async lookup(keys: readonly Key[], signal: AbortSignal): Promise<readonly SideRecord[]> {
    const options = { transient: true };
    if (this.unreadable) throw new SideError('TRU_SIDE_UNREACHABLE', this.label, 'nobody answers', options);
    return super.lookup(keys, signal);
  }
}

/** A sender that says what it is told to, and writes down what was sent. */
export class ToldSender implements Sender {
  readonly sent: string[] = [];
  answer: Pick<Outcome, 'class' | 'code'> = { class: 'accepted', code: 'http-200' };
  /** What `ready` says, the last one for ever. */
  isReady: boolean[] = [true];

  async warm(): Promise<void> {}

  ready(): boolean {
    return (this.isReady.length > 1 ? this.isReady.shift() : this.isReady[0]) ?? true;
  }

  async send(_payload: unknown, context: { readonly idempotencyKey: string }): Promise<Outcome> {
    this.sent.push(context.idempotencyKey);
    return {
      ...this.answer,
      unclassified: false,
      retryAfterMs: null,
      request: null,
      answer: null,
      error: null,
      durationMs: 1,
    };
  }

  async close(): Promise<void> {}
}

export interface RepairFixture {
  readonly deps: SendDeps;
  readonly pair: Pair;
  readonly target: Target;
  readonly source: UnsteadySide;
  readonly downstream: UnsteadySide;
  readonly sender: ToldSender;
  readonly turns: Turns;
  readonly context: Parameters<typeof lookBoth>[3] & { readonly digestKey: string };
  /** Replaces the looks before sends. */
  look: (key: Key) => Promise<Look>;
  readonly realLook: (key: Key) => Promise<Look>;
  readonly ended: readonly EndedByLook[];
  readonly checkpoints: Map<string, () => Promise<void>>;
  /** A record that is missing downstream, its diff and its planned repair; gives the repair's id. */
  plan(no: string): Promise<string>;
  /** The same, ready to be taken by a job of ring 1. */
  queue(no: string): Promise<string>;
  /** The row of a repair. */
  // biome-ignore lint/suspicious/noExplicitAny: a row as the driver gives it
  row(id: string): Promise<any>;
  events(id: string): Promise<string[]>;
}

type TargetInput = NonNullable<ConfigInput['targets']>[string];

/** The send path on a real store, between sides in memory and a sender that is told what to answer. */
export function repairFixture(
  db: Db,
  name: string,
  options: {
    readonly target?: TargetInput;
    readonly reconciliation?: object;
    readonly onNotTaken?: 'resend';
    readonly timing?: GateTiming;
    /** Of the turns; 10 when left out. */
    readonly nearness?: number;
  } = {},
): RepairFixture {
  const side = { type: 'postgres', url: 'postgres://x@h/d', table: 't', time: 'at', fields: ['amount'] };
  const action = { type: 'http', path: '/orders', body: { no: '{key.no}', amount: '{source.amount}' } };
  const repair = { target: name, action, onNotTaken: options.onNotTaken ?? 'escalate' };
  const config = configSchema.parse({
    version: 1,
    targets: { [name]: { url: 'http://target', watermark: 'unlimited', ...options.target } },
    reconciliations: {
      [name]: {
        source: side,
        downstream: side,
        key: ['no'],
        compare: { amount: 'text' },
        repair: { missing: repair },
        ...options.reconciliation,
      },
    },
  });
  const { [name]: target } = config.targets;
  const { [name]: reconciliation } = config.reconciliations;
  if (!target || !reconciliation || reconciliation.repair.missing === 'report')
    throw new Error('the schema lost what it was given');
  const source = new UnsteadySide('source', []);
  const downstream = new UnsteadySide('downstream', []);
  const pair: Pair = { name, config: reconciliation, zone: 'UTC', source, downstream };
  const context = { rules: reconciliation.compare, digestKey: 'k' };
  const never = new AbortController().signal;
  const batch = new LookBatch((keys) => lookBoth(keys, source, downstream, context, never));
  const sender = new ToldSender();
  const turns = new Turns({ concurrency: 10, nearness: options.nearness ?? 10 });
  const ended: EndedByLook[] = [];
  const checkpoints = new Map<string, () => Promise<void>>();
  const route = (): RepairRoute => ({
    pair,
    repair: reconciliation.repair.missing as RepairRoute['repair'],
    target,
    gate: name,
    sender,
    look: (key) => fixture.look(key),
    turns,
  });
  const deps: SendDeps = {
    db,
    workerId: 'w1',
    version: '0',
    configRevision: null,
    timing: options.timing ?? MINUTE,
    times: TIMES,
    isActive: async () => true,
    route,
    paces: new Paces(),
    takeSlot: async () => {},
    logger: createLogger({ level: 'silent', redact: (text) => text }),
    onAttempt: () => {},
    onEnded: (one) => ended.push(one),
    checkpoint: async (point) => checkpoints.get(point)?.(),
    random: () => 0.5,
    draining: never,
  };
  const plan = async (no: string): Promise<string> => {
    const order = record(no, { amount: '10' });
    source.records.push(order);
    const verdict = (await lookBoth([order.key], source, downstream, context, never)).get(keyText(order.key));
    if (verdict?.verdict !== 'differs') throw new Error(`${no} does not differ`);
    const { finding } = verdict;
    const [diff] = await db('diff')
      .insert({
        reconciliation: name,
        business_key: keyText(order.key),
        kind: 'missing',
        trace_id: 'a'.repeat(32),
        next_look: db.raw(`clock_timestamp() + interval '1 hour'`),
      })
      .returning('id');
    const chosen = planCompensation({
      finding,
      reconciliation: pair,
      now: await storeClock(db),
      byPerson: true,
    });
    if (chosen.plan !== 'compensate') throw new Error(chosen.why);
    const facts = { diffId: diff.id, runId: null, configRevision: null, reconciliation: name };
    const row = { ...chosen, ...facts, key: order.key, revision: 0, traceId: 'a'.repeat(32) };
    return only(await insertCompensations(db, [row]));
  };
  const fixture: RepairFixture = {
    deps,
    pair,
    target,
    source,
    downstream,
    sender,
    turns,
    context,
    look: (key) => batch.look(key),
    realLook: (key) => batch.look(key),
    ended,
    checkpoints,
    plan,
    async queue(no) {
      const id = await plan(no);
      // A gate that was never used lets its first caller wait.
      await db('gate')
        .insert({ gate: name, purpose: 'send', slots: { lastSlotMs: 0 } })
        .onConflict(['gate', 'purpose'])
        .ignore();
      await db('compensation').where({ id }).update({ state: 'ready' });
      await db('compensation').where({ id }).update({ state: 'queued', ring: 1 });
      return id;
    },
    row: (id) => db('compensation').where({ id }).first(),
    async events(id) {
      const rows = await db('diff_event').where({ compensation_id: id }).orderBy('id').select('event');
      return rows.map((row) => row.event);
    },
  };
  return fixture;
}
