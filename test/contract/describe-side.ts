import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ruleSchema } from '../../src/config/schema.ts';
import { addMillis, instantFromMillis, millisOf } from '../../src/reconcile/instant.ts';
import { compareKeys } from '../../src/reconcile/key.ts';
import type { SideRecord, Window } from '../../src/reconcile/record.ts';
import { type Side, SideError } from '../../src/reconcile/side.ts';
import { at, NOON } from '../support/records.ts';

/** A record as a fixture stores it. */
export interface StoredOrder {
  readonly order_no: string;
  readonly state: string | null;
  /** A decimal number. */
  readonly amount: string;
  /** ISO 8601 in UTC. */
  readonly paid_at: string;
}

export interface SideFixture {
  /** Opens a side over the stored orders: key `order_no`, fields `state` and `amount`, time `paid_at`. */
  open(): Side;
  /** Opens the same side where nobody listens. */
  openUnreachable(): Side;
  /** Replaces what is stored. */
  store(orders: readonly StoredOrder[]): Promise<void>;
  close(): Promise<void>;
}

export const SIDE_CONTEXT = {
  name: 'source',
  keyNames: ['order_no'],
  rules: { state: ruleSchema.parse('text'), amount: ruleSchema.parse('decimal') },
};

const order = (order_no: string, more: Partial<StoredOrder> = {}): StoredOrder => ({
  order_no,
  state: 'PAID',
  amount: '10.50',
  paid_at: at('12:30'),
  ...more,
});
const ODD_KEYS = [
  "O'Brien",
  'a b',
  'a/b',
  '..',
  '.',
  '50%',
  'ключ',
  '😀',
  '\uff61',
  '{key}',
  '"',
  '\\',
  'A',
  'a',
  '10',
  '9',
  '-',
];

/** What every side must do, whatever it reads. */
export function describeSide(name: string, make: () => Promise<SideFixture>): void {
  describe(`the side ${name}`, () => {
    let fixture: SideFixture;
    let side: Side;
    const { signal } = new AbortController();
    const keysOf = (records: readonly SideRecord[]) => records.map((record) => record.key[0]).sort();
    const scan = async (window: Window = NOON) => {
      const records: SideRecord[] = [];
      for await (const page of side.scan(window, signal)) records.push(...page);
      return records;
    };

    beforeAll(async () => {
      fixture = await make();
      side = fixture.open();
    });
    afterAll(async () => {
      await side?.close();
      await fixture?.close();
    });

    it('lists the records of a half-open window, each as often as it exists', async () => {
      await fixture.store([
        order('before', { paid_at: at('11:59:59.999999') }),
        order('first', { paid_at: at('12:00') }),
        order('twice'),
        order('twice'),
        order('last', { paid_at: at('12:59:59.999999') }),
        order('after', { paid_at: at('13:00') }),
      ]);
      expect(keysOf(await scan())).toEqual(['first', 'last', 'twice', 'twice']);
    });

    it('lists nothing in an empty window', async () => {
      await fixture.store([order('a')]);
      expect(await scan({ from: at('12:30'), to: at('12:30') })).toEqual([]);
      expect(await scan({ from: at('14:00'), to: at('15:00') })).toEqual([]);
    });

    it('lists more records than a page holds', async () => {
      const orders = Array.from({ length: 25 }, (_, i) => order(`order-${i}`));
      await fixture.store(orders);
      expect(keysOf(await scan())).toEqual(orders.map((each) => each.order_no).sort());
    });

    it('keeps the order it claims', async () => {
      await fixture.store(ODD_KEYS.map((key) => order(key)));
      const keys = (await scan()).map((record) => record.key);
      if (side.ordered) expect(keys).toEqual([...keys].sort(compareKeys));
      expect(keys).toHaveLength(ODD_KEYS.length);
    });

    it('finds records by keys of any characters, and nothing else', async () => {
      await fixture.store(ODD_KEYS.map((key) => order(key)));
      const all = await side.lookup(
        ODD_KEYS.map((key) => [key]),
        signal,
      );
      expect(keysOf(all)).toEqual([...ODD_KEYS].sort());
      expect(keysOf(await side.lookup([['A'], ['b'], [' a'], ['a ']], signal))).toEqual(['A']);
    });

    it('finds every record of a key that has several', async () => {
      await fixture.store([
        order('twice', { state: 'NEW' }),
        order('once'),
        order('twice', { state: 'PAID' }),
      ]);
      const found = await side.lookup([['twice'], ['absent']], signal);
      expect(found.map((record) => record.fields['state'])).toEqual(
        expect.arrayContaining([
          { type: 'text', text: 'NEW' },
          { type: 'text', text: 'PAID' },
        ]),
      );
      expect(found).toHaveLength(2);
    });

    it('asks nothing for no keys and for keys that name nothing', async () => {
      expect(await side.lookup([], signal)).toEqual([]);
      expect(await side.lookup([[], ['']], signal)).toEqual([]);
    });

    it('gives values exact: large numbers, null, microseconds', async () => {
      const amount = '90071992547409930.25';
      await fixture.store([order('a', { amount, state: null, paid_at: at('12:00:00.242999') })]);
      const [listed] = await scan();
      const [found] = await side.lookup([['a']], signal);
      for (const record of [listed, found]) {
        expect(record).toEqual({
          key: ['a'],
          time: at('12:00:00.242999'),
          fields: { state: { type: 'null' }, amount: { type: 'decimal', text: amount } },
        });
      }
    });

    it('tells its own time', async () => {
      const clock = await side.clock(signal);
      const now = instantFromMillis(Date.now());
      expect(clock.now > addMillis(now, -60_000) && clock.now < addMillis(now, 60_000)).toBe(true);
      expect(clock.oldestOpen === null || millisOf(clock.oldestOpen) <= millisOf(clock.now)).toBe(true);
    });

    it('describes itself without secrets', async () => {
      const description = await side.describe(signal);
      expect(description.columns.map((column) => column.name)).toEqual(['order_no', 'state', 'amount']);
      expect(JSON.stringify(description)).not.toContain('hunter2');
      expect(side.label).not.toContain('hunter2');
    });

    it('stops with the reason of an aborted signal', async () => {
      await fixture.store([order('a')]);
      const aborted = AbortSignal.abort(new Error('enough'));
      await expect(side.lookup([['a']], aborted)).rejects.toThrow('enough');
      await expect(side.scan(NOON, aborted)[Symbol.asyncIterator]().next()).rejects.toThrow('enough');
    });

    it('throws a transient SideError when nobody answers, and never an empty answer', async () => {
      const lost = fixture.openUnreachable();
      try {
        const error = await lost.lookup([['a']], signal).catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(SideError);
        expect(error).toMatchObject({ code: 'TRU_SIDE_UNREACHABLE', transient: true });
        expect(String(error)).not.toContain('hunter2');
        await expect(lost.scan(NOON, signal)[Symbol.asyncIterator]().next()).rejects.toBeInstanceOf(
          SideError,
        );
        await expect(lost.clock(signal)).rejects.toBeInstanceOf(SideError);
      } finally {
        await lost.close();
      }
    });
  });
}
