import type { Arrival, EffectCount, Evidence } from './evidence.ts';
import type { Expected, Scenario } from './scenario.ts';

export interface Counts {
  readonly source: number;
  readonly downstream: number;
  readonly matched: number;
  readonly missing: number;
  readonly extra: number;
  readonly mismatched: number;
  readonly duplicate: number;
  readonly healed: number;
  readonly undecided: number;
}

export interface Compensations {
  readonly planned: number;
  /** Calls made; a compensation may take several. */
  readonly sent: number;
  readonly verified: number;
  readonly healed: number;
  readonly escalated: number;
  readonly open: number;
}

/** A run as `trueup runs --format json` tells it. */
export interface RunReport {
  readonly id: string;
  readonly reconciliation: string;
  readonly phase: string;
  readonly result: string | null;
  readonly verdict: string | null;
  readonly counts: Counts;
  readonly compensations: Compensations;
}

/** The object that `--json` prints. */
export interface Report {
  readonly reconciliations: readonly { readonly name: string; readonly counts: Counts }[];
  readonly compensations: Compensations;
  readonly effects: { readonly applied: number; readonly doubled: number };
  readonly watermark: {
    readonly perMinute: number;
    readonly maxSendsIn60s: number;
    readonly usedShare: number;
    readonly targets: Readonly<Record<string, number>>;
  };
  /** One token per refused order, as the gateway gave it out last. */
  readonly refused: readonly { readonly order: string; readonly token: string }[];
  readonly notTaken: readonly string[];
  readonly alerts: { readonly sent: number };
  readonly seconds: number;
  readonly failures: readonly string[];
}

export interface CheckInput {
  readonly scenario: Pick<Scenario, 'expected' | 'lostShipments'>;
  readonly evidence: Evidence;
  readonly runs: readonly RunReport[];
  /** Messages as the chat got them. */
  readonly alerts: readonly unknown[];
  readonly perMinute: number;
  readonly seconds: number;
}

/** The least share of the watermark that a replay with a backlog has to use. */
const USED_SHARE = 0.95;

/**
 * Compares what trueup says with what was planted, and both with the systems' own tables. `failures` holds one
 * sentence for each expectation that was not met; empty means that everything was as it should be.
 */
export function check(input: CheckInput): Report {
  const { evidence, runs, perMinute } = input;
  const counts = {
    gateway: mostIn60s(evidence.gateway.arrivals),
    warehouse: mostIn60s(evidence.warehouse.arrivals),
  };
  const maxSendsIn60s = Math.max(counts.gateway, counts.warehouse);
  const effects = [...evidence.gateway.effects, ...evidence.warehouse.effects, ...evidence.shop.effects];
  const arrived =
    evidence.gateway.arrivals.length + evidence.warehouse.arrivals.length + evidence.shop.effects.length;
  const refusals = evidence.gateway.arrivals.filter((arrival) => arrival.outcome === 'refused');
  const tokens = new Map(refusals.map((arrival) => [arrival.record ?? '', arrival.token ?? '']));
  const report = {
    reconciliations: runs.map((run) => ({ name: run.reconciliation, counts: run.counts })),
    compensations: total(runs),
    effects: { applied: effects.length, doubled: doubled(effects) },
    watermark: { perMinute, maxSendsIn60s, usedShare: round(maxSendsIn60s / perMinute), targets: counts },
    refused: [...tokens]
      .map(([order, token]) => ({ order, token }))
      .sort((a, b) => (a.order < b.order ? -1 : 1)),
    notTaken: [...new Set(recordsWith(evidence, 'swallowed'))].sort(),
    alerts: { sent: input.alerts.length },
    seconds: Math.round(input.seconds * 10) / 10,
  };
  const failures = [
    ...checkFound(input.scenario.expected, runs),
    ...checkSent(input.scenario, evidence),
    ...checkEnded(input.scenario, report.compensations),
    ...checkApart(input.scenario.expected, evidence),
    ...same('effects.doubled', report.effects.doubled, 0),
    ...expectation(
      report.compensations.sent >= arrived,
      `${arrived} calls arrived and only ${report.compensations.sent} were counted as sent`,
    ),
    ...same('refused orders with a token of their own', new Set(tokens.values()).size, tokens.size),
    ...expectation(
      maxSendsIn60s <= perMinute,
      `${maxSendsIn60s} sends in 60 s are more than the watermark ${perMinute}`,
    ),
    ...expectation(
      report.watermark.usedShare >= USED_SHARE,
      `only ${report.watermark.usedShare} of the watermark was used, not ${USED_SHARE}`,
    ),
    ...expectation(
      input.alerts.some(tellsOfEscalation),
      'no alert about the escalated payments reached the chat',
    ),
  ];
  return { ...report, failures };
}

/** Most arrivals in any half-open 60 seconds. */
export function mostIn60s(arrivals: readonly Pick<Arrival, 'atMicros'>[]): number {
  const times = arrivals.map((arrival) => arrival.atMicros).sort((a, b) => a - b);
  let most = 0;
  let first = 0;
  for (const [last, at] of times.entries()) {
    while ((times[first] ?? at) <= at - 60_000_000) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** Whether a chat message calls a person to the payments that nothing but a person can settle. */
export function tellsOfEscalation(message: unknown): boolean {
  const text = JSON.stringify(message);
  return text.includes('escalated') && text.includes('payments');
}

function doubled(effects: readonly EffectCount[]): number {
  return effects.reduce((sum, effect) => sum + effect.times - 1, 0);
}

/** What the runs found is what was planted; a record in flight would stand here as one missing too many. */
function checkFound(expected: Expected, runs: readonly RunReport[]): string[] {
  const failures: string[] = [];
  const want = {
    payments: { ...expected.payments, duplicate: 0, undecided: 0 },
    warehouse: { ...expected.warehouse, mismatched: 0, extra: 0, healed: 0, duplicate: 0, undecided: 0 },
  };
  for (const [name, figures] of Object.entries(want)) {
    const run = runs.find((candidate) => candidate.reconciliation === name);
    if (!run) {
      failures.push(`there is no run of ${name}`);
      continue;
    }
    failures.push(
      ...same(`${name}: result`, run.result, 'complete'),
      ...same(`${name}: verdict`, run.verdict, 'differ'),
    );
    for (const [figure, value] of Object.entries(figures)) {
      failures.push(...same(`${name}: ${figure}`, run.counts[figure as keyof Counts], value));
    }
  }
  return failures;
}

/** Exactly the planted records were sent: none that was in flight or healed by itself, and none that agreed. */
function checkSent(scenario: CheckInput['scenario'], evidence: Evidence): string[] {
  const { orders } = scenario.expected;
  const sent = new Set(evidence.gateway.arrivals.map((arrival) => arrival.record ?? 'no order number'));
  const wanted = [...orders.created, ...orders.corrected, ...orders.refused, ...orders.swallowed];
  return [
    ...sameSet('calls to the gateway for orders in flight', intersect(sent, orders.inFlight), []),
    ...sameSet('calls to the gateway for orders that healed by themselves', intersect(sent, orders.late), []),
    ...sameSet('orders called for at the gateway', sent, wanted),
    ...sameSet(
      'shipments called for at the warehouse',
      evidence.warehouse.arrivals.map((arrival) => arrival.record ?? 'no shipment number'),
      scenario.lostShipments,
    ),
    ...sameSet('orders refused', recordsWith(evidence, 'refused'), orders.refused),
    ...sameSet('orders answered and not written', recordsWith(evidence, 'swallowed'), orders.swallowed),
    ...sameSet(
      'orders changed at the shop',
      evidence.shop.effects.map((effect) => effect.record),
      orders.fixedAtShop,
    ),
  ];
}

/** Every compensation ended, and in the right way. */
function checkEnded({ expected, lostShipments }: CheckInput['scenario'], ended: Compensations): string[] {
  const { orders } = expected;
  const escalated = orders.refused.length + orders.swallowed.length;
  const verified =
    orders.created.length + orders.corrected.length + orders.fixedAtShop.length + lostShipments.length;
  return [
    ...same('compensations planned', ended.planned, verified + escalated + orders.late.length),
    ...same('compensations verified', ended.verified, verified),
    ...same('compensations healed', ended.healed, orders.late.length),
    ...same('compensations escalated', ended.escalated, escalated),
    ...same('compensations still open', ended.open, 0),
  ];
}

/** In the end the systems agree, but for what only a person can settle. */
function checkApart(expected: Expected, { apart }: Evidence): string[] {
  const { orders } = expected;
  return [
    ...sameSet('payments still missing', apart.missingPayments, [...orders.refused, ...orders.swallowed]),
    ...sameSet('payments only at the gateway', apart.extraPayments, orders.extra),
    ...sameSet('payments still different', apart.differentPayments, []),
    ...sameSet('shipments still missing', apart.missingShipments, []),
    ...sameSet('shipments booked more than once', apart.repeatedShipments, []),
  ];
}

function total(runs: readonly RunReport[]): Compensations {
  const sum = (pick: (compensations: Compensations) => number) =>
    runs.reduce((so, run) => so + pick(run.compensations), 0);
  return {
    planned: sum((c) => c.planned),
    sent: sum((c) => c.sent),
    verified: sum((c) => c.verified),
    healed: sum((c) => c.healed),
    escalated: sum((c) => c.escalated),
    open: sum((c) => c.open),
  };
}

function recordsWith(evidence: Evidence, outcome: string): string[] {
  return evidence.gateway.arrivals
    .filter((arrival) => arrival.outcome === outcome)
    .map((arrival) => arrival.record ?? 'no order number');
}

function same(what: string, actual: unknown, wanted: unknown): string[] {
  return expectation(actual === wanted, `${what}: ${String(actual)}, should be ${String(wanted)}`);
}

function sameSet(what: string, actual: Iterable<string>, wanted: Iterable<string>): string[] {
  const [have, want] = [new Set(actual), new Set(wanted)];
  const more = [...have].filter((item) => !want.has(item));
  const less = [...want].filter((item) => !have.has(item));
  return [
    ...expectation(
      more.length === 0,
      `${what}: ${more.length} too many, such as ${more.slice(0, 3).join(', ')}`,
    ),
    ...expectation(
      less.length === 0,
      `${what}: ${less.length} too few, such as ${less.slice(0, 3).join(', ')}`,
    ),
  ];
}

function intersect(items: ReadonlySet<string>, others: readonly string[]): string[] {
  return others.filter((item) => items.has(item));
}

function expectation(met: boolean, sentence: string): string[] {
  return met ? [] : [sentence];
}

function round(share: number): number {
  return Math.floor(share * 1000) / 1000;
}
