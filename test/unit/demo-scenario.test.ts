import { describe, expect, it } from 'vitest';
import { Mischief } from '../../demo/mischief.ts';
import { parseOptions } from '../../demo/options.ts';
import { sumMetrics } from '../../demo/product.ts';
import { makeScenario } from '../../demo/scenario.ts';

const NOW = new Date('2026-11-30T12:00:00Z');

describe('the scenario of the demo', () => {
  it.each([0, 1, 7, 123_456_789])('holds exactly the planted differences with seed %i', (seed) => {
    const { tasks, inFlight, payments, shipments, lostShipments, slowShipments, expected } = makeScenario(
      seed,
      NOW,
    );
    const shop = new Map([...tasks, ...inFlight].map((task) => [task.orderNo, task]));
    const gateway = new Map(payments.map((payment) => [payment.orderNo, payment]));
    expect(shop.size).toBe(20_000);
    expect(inFlight).toHaveLength(40);
    const missing = tasks.filter((task) => !gateway.has(task.orderNo));
    expect(missing).toHaveLength(600);
    expect(payments.filter((payment) => !shop.has(payment.orderNo))).toHaveLength(5);
    const mismatched = tasks.filter((task) => {
      const payment = gateway.get(task.orderNo);
      return payment && (payment.status !== task.status || payment.amount !== task.amount);
    });
    expect(mismatched).toHaveLength(60);
    const stale = mismatched.filter(
      (task) => task.status === 'PENDING' && gateway.get(task.orderNo)?.status === 'SUCCESS',
    );
    expect(stale.map((task) => task.orderNo).sort()).toEqual(expected.orders.fixedAtShop);
    expect(stale).toHaveLength(30);
    expect(new Set(shipments.map((shipment) => shipment.shipmentNo)).size).toBe(2_000);
    expect(lostShipments).toHaveLength(50);
    expect(lostShipments).toEqual(expect.arrayContaining([...slowShipments]));
    expect(slowShipments).toHaveLength(3);
  });

  it('lies within the last three hours', () => {
    const { tasks, payments, shipments } = makeScenario(3, NOW);
    const times = [
      ...tasks.map((task) => task.finishedAt),
      ...payments.map((payment) => payment.updatedAt),
      ...shipments.map((shipment) => shipment.shippedAt),
    ].map((time) => time.getTime());
    expect(Math.min(...times)).toBeGreaterThanOrEqual(NOW.getTime() - 3 * 3_600_000 + 60_000);
    expect(Math.max(...times)).toBeLessThan(NOW.getTime() - 20_000);
  });

  it('gives the orders that heal by themselves the highest numbers, so that they are sent last', () => {
    const { expected, tasks } = makeScenario(5, NOW);
    const highest = tasks
      .map((task) => task.orderNo)
      .sort()
      .slice(-20);
    expect(expected.orders.late).toEqual(highest);
  });

  it('is the same for the same seed and another for another', () => {
    expect(makeScenario(4, NOW)).toEqual(makeScenario(4, NOW));
    expect(makeScenario(4, NOW).expected).not.toEqual(makeScenario(5, NOW).expected);
  });
});

describe('the mischief of the gateway', () => {
  it.each([0, 1, 9, 10, 77])(
    'fails one call of every ten for 20 s and answers one of a hundred late, seed %i',
    (seed) => {
      const mischief = new Mischief(seed);
      const mishaps = Array.from({ length: 1_000 }, (_, call) =>
        mischief.decide(`ORD${call}`, 5_000 + call * 100, true),
      );
      for (let block = 0; block < 200; block += 10) {
        expect(mishaps.slice(block, block + 10).filter((mishap) => mishap === 'error')).toHaveLength(1);
      }
      expect(mishaps.slice(210)).not.toContain('error');
      expect(mishaps.filter((mishap) => mishap === 'slow')).toHaveLength(10);
    },
  );

  it('never meets an order twice, however often it is called for', () => {
    const mischief = new Mischief(2);
    const mishaps = Array.from({ length: 100 }, (_, call) => mischief.decide('ORD1', call * 100, true));
    expect(mishaps.filter((mishap) => mishap !== 'none')).toHaveLength(1);
  });

  it('answers no order late that has a part of its own to play', () => {
    const mischief = new Mischief(2);
    const mishaps = Array.from({ length: 300 }, (_, call) =>
      mischief.decide(`ORD${call}`, 60_000 + call, false),
    );
    expect(mishaps).not.toContain('slow');
  });
});

describe('the options of the demo', () => {
  it('are read in any order, with a value after a space or an equals sign', () => {
    expect(parseOptions(['--serve', '--seed', '7', '--json'])).toEqual({
      kind: 'run',
      options: { seed: 7, serve: true, json: true },
    });
    expect(parseOptions(['--seed=0'])).toMatchObject({ options: { seed: 0, serve: false, json: false } });
    expect(parseOptions(['--help'])).toEqual({ kind: 'help' });
  });

  it.each([
    [['--sead', '7'], 'the demo has no option "--sead"'],
    [['--seed'], '--seed takes a whole number from 0 to 999999999, not nothing'],
    [['--seed', '1.5'], '--seed takes a whole number from 0 to 999999999, not "1.5"'],
    [['--json=yes'], '--json takes no value'],
    [['extra'], 'the demo has no option "extra"'],
  ])('are refused when wrong: %j', (args, message) => {
    expect(parseOptions(args)).toEqual({ kind: 'wrong', message: `${message}. Try: npm run demo -- --help` });
  });
});

describe('the metrics on the progress line', () => {
  it('are summed over their labels', () => {
    const sums = sumMetrics(
      '# HELP trueup_diffs_open x\ntrueup_diffs_open{kind="missing"} 600\ntrueup_diffs_open{kind="extra"} 5\ntrueup_backlog 12\n',
    );
    expect(sums.get('trueup_diffs_open')).toBe(605);
    expect(sums.get('trueup_backlog')).toBe(12);
  });
});
