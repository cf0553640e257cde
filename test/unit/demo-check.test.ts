import { describe, expect, it } from 'vitest';
import { type CheckInput, check, mostIn60s, type RunReport } from '../../demo/check.ts';
import type { Arrival, EffectCount, Evidence } from '../../demo/evidence.ts';
import { makeScenario } from '../../demo/scenario.ts';

const scenario = makeScenario(1, new Date('2026-11-30T12:00:00Z'));
const { orders } = scenario.expected;
const SPACING_MICROS = 100_417;

function arrivals(records: readonly string[], outcome: string, from = 0): Arrival[] {
  return records.map((record, index) => ({
    atMicros: (from + index) * SPACING_MICROS,
    record,
    outcome,
    token: outcome === 'refused' ? `token of ${record}` : null,
  }));
}

function effects(records: readonly string[], operation: string): EffectCount[] {
  return records.map((record) => ({ record, operation, times: 1 }));
}

/** What the systems hold after a run in which everything went as it should. */
function perfectEvidence(): Evidence {
  const called = [...orders.created, ...orders.corrected];
  return {
    gateway: {
      arrivals: [
        ...arrivals(called, 'applied'),
        ...arrivals(orders.refused, 'refused', called.length),
        ...arrivals(orders.swallowed, 'swallowed', called.length + 15),
      ],
      effects: [...effects(orders.created, 'create'), ...effects(orders.corrected, 'correct')],
    },
    warehouse: {
      arrivals: arrivals(scenario.lostShipments, 'applied'),
      effects: effects(scenario.lostShipments, 'create'),
    },
    shop: { effects: effects(orders.fixedAtShop, 'update') },
    apart: {
      missingPayments: [...orders.refused, ...orders.swallowed],
      extraPayments: orders.extra,
      differentPayments: [],
      missingShipments: [],
      repeatedShipments: [],
    },
  };
}

function perfectRuns(): RunReport[] {
  const none = { downstream: 0, matched: 0, duplicate: 0, undecided: 0 };
  return [
    {
      id: '1',
      reconciliation: 'payments',
      phase: 'done',
      result: 'complete',
      verdict: 'differ',
      counts: { ...none, source: 20_000, missing: 600, mismatched: 60, extra: 5, healed: 40 },
      compensations: { planned: 660, sent: 660, verified: 615, healed: 20, escalated: 25, open: 0 },
    },
    {
      id: '2',
      reconciliation: 'warehouse',
      phase: 'done',
      result: 'complete',
      verdict: 'differ',
      counts: { ...none, source: 2_000, missing: 50, mismatched: 0, extra: 0, healed: 0 },
      compensations: { planned: 50, sent: 50, verified: 50, healed: 0, escalated: 0, open: 0 },
    },
  ];
}

function input(changes: Partial<CheckInput> = {}): CheckInput {
  return {
    scenario,
    evidence: perfectEvidence(),
    runs: perfectRuns(),
    alerts: [{ data: { kind: 'escalated', reconciliation: 'payments' } }],
    perMinute: 600,
    seconds: 90,
    ...changes,
  };
}

function withGatewayArrivals(change: (arrivals: Arrival[]) => Arrival[]): CheckInput {
  const evidence = perfectEvidence();
  const { gateway } = evidence;
  return input({
    evidence: { ...evidence, gateway: { ...gateway, arrivals: change([...gateway.arrivals]) } },
  });
}

describe('most sends in 60 s', () => {
  const at = (...seconds: number[]) => seconds.map((second) => ({ atMicros: second * 1_000_000 }));

  it('counts a half-open minute: two calls exactly 60 s apart are not in one', () => {
    expect(mostIn60s(at(0, 60))).toBe(1);
    expect(mostIn60s(at(0, 59.999999))).toBe(2);
  });

  it('finds a crowd across the edge of two clock minutes', () => {
    expect(mostIn60s(at(50, 51, 52, 61, 62, 63, 130))).toBe(6);
  });

  it('does not depend on the order in which the arrivals are listed', () => {
    expect(mostIn60s(at(63, 2, 62, 4))).toBe(3);
  });

  it('is 0 without a call', () => {
    expect(mostIn60s([])).toBe(0);
  });
});

describe('the checker of the demo', () => {
  it('is satisfied by a run in which everything went as planted', () => {
    const report = check(input());
    expect(report.failures).toEqual([]);
    expect(report.compensations).toEqual({
      planned: 710,
      sent: 710,
      verified: 665,
      healed: 20,
      escalated: 25,
      open: 0,
    });
    expect(report.effects).toEqual({ applied: 665, doubled: 0 });
    expect(report.watermark).toMatchObject({ perMinute: 600, maxSendsIn60s: 598, usedShare: 0.996 });
    expect(report.refused).toHaveLength(15);
    expect(report.notTaken).toEqual(orders.swallowed);
    expect(report.alerts.sent).toBe(1);
  });

  it('sees one call more than the watermark in 60 s', () => {
    const crowded = withGatewayArrivals((list) =>
      list.map((row, index) => ({ ...row, atMicros: index * 99_000 })),
    );
    expect(check(crowded).failures).toEqual(['607 sends in 60 s are more than the watermark 600']);
  });

  it('sees a watermark that was not used', () => {
    const idle = withGatewayArrivals((list) =>
      list.map((row, index) => ({ ...row, atMicros: index * 110_000 })),
    );
    expect(check(idle).failures).toEqual(['only 0.91 of the watermark was used, not 0.95']);
  });

  it('counts each effect beyond the first as doubled, on every system', () => {
    const evidence = perfectEvidence();
    const twice = (list: readonly EffectCount[]) =>
      list.map((row, index) => (index === 0 ? { ...row, times: 3 } : row));
    const report = check(
      input({
        evidence: {
          ...evidence,
          warehouse: { ...evidence.warehouse, effects: twice(evidence.warehouse.effects) },
          shop: { effects: twice(evidence.shop.effects) },
        },
      }),
    );
    expect(report.effects).toEqual({ applied: 665, doubled: 4 });
    expect(report.failures).toEqual(['effects.doubled: 4, should be 0']);
  });

  it('names an order in flight that was reported and sent', () => {
    const [order = ''] = orders.inFlight;
    const sent = withGatewayArrivals((list) => [...list, ...arrivals([order], 'applied', 10_000)]);
    expect(check(sent).failures).toEqual([
      `calls to the gateway for orders in flight: 1 too many, such as ${order}`,
      `orders called for at the gateway: 1 too many, such as ${order}`,
    ]);
  });

  it('names an order that had healed by itself and was sent all the same', () => {
    const [order = ''] = orders.late;
    const sent = withGatewayArrivals((list) => [...list, ...arrivals([order], 'repeated', 10_000)]);
    expect(check(sent).failures[0]).toBe(
      `calls to the gateway for orders that healed by themselves: 1 too many, such as ${order}`,
    );
  });

  it('names an order that was never sent', () => {
    const [order = ''] = orders.created;
    const missing = withGatewayArrivals((list) => list.filter((row) => row.record !== order));
    expect(check(missing).failures).toEqual([
      `orders called for at the gateway: 1 too few, such as ${order}`,
    ]);
  });

  it('compares every planted number with what the run found', () => {
    const runs = perfectRuns().map((run) => ({
      ...run,
      counts: { ...run.counts, missing: 1, undecided: 2 },
    }));
    expect(check(input({ runs })).failures).toEqual([
      'payments: missing: 1, should be 600',
      'payments: undecided: 2, should be 0',
      'warehouse: missing: 1, should be 50',
      'warehouse: undecided: 2, should be 0',
    ]);
  });

  it('wants every compensation to have ended', () => {
    const runs = perfectRuns().map((run) => ({
      ...run,
      compensations: { ...run.compensations, verified: run.compensations.verified - 1, open: 1 },
    }));
    expect(check(input({ runs })).failures).toEqual([
      'compensations verified: 663, should be 665',
      'compensations still open: 2, should be 0',
    ]);
  });

  it('wants every call that arrived to have been counted', () => {
    const runs = perfectRuns().map((run) => ({ ...run, compensations: { ...run.compensations, sent: 300 } }));
    expect(check(input({ runs })).failures).toEqual(['690 calls arrived and only 600 were counted as sent']);
  });

  it('looks at the systems in the end, whatever the figures say', () => {
    const evidence = perfectEvidence();
    const apart = { ...evidence.apart, differentPayments: ['ORD1'], repeatedShipments: ['SHP1'] };
    expect(check(input({ evidence: { ...evidence, apart } })).failures).toEqual([
      'payments still different: 1 too many, such as ORD1',
      'shipments booked more than once: 1 too many, such as SHP1',
    ]);
  });

  it('wants the escalated payments to have been told of', () => {
    const alerts = [{ data: { kind: 'diffs', reconciliation: 'payments' } }];
    expect(check(input({ alerts })).failures).toEqual([
      'no alert about the escalated payments reached the chat',
    ]);
  });

  it('says when a reconciliation did not run at all', () => {
    const runs = perfectRuns().slice(0, 1);
    expect(check(input({ runs })).failures).toContain('there is no run of warehouse');
  });
});
