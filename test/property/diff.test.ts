import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ruleSchema } from '../../src/config/schema.ts';
import { mergeStreams } from '../../src/reconcile/diff.ts';
import { addMillis, type Instant, parseInstant } from '../../src/reconcile/instant.ts';
import { compareKeys } from '../../src/reconcile/key.ts';
import { type ReadResult, readWindow } from '../../src/reconcile/read-window.ts';
import { type DiffKind, keyText, type SideRecord, type Value } from '../../src/reconcile/record.ts';
import { SeenKeys } from '../../src/reconcile/seen-keys.ts';
import { canonicalDecimal } from '../../src/reconcile/value/decimal.ts';
import { canonicalInstant } from '../../src/reconcile/value/instant.ts';
import { chunks } from '../../src/reconcile/window.ts';
import { ArraySide } from '../support/array-side.ts';
import { at, NOON, record } from '../support/records.ts';

const FIELDS = ['a', 'b'] as const;
const rules = { a: ruleSchema.parse('text'), b: ruleSchema.parse('text') };

/** Few values, so that equal keys and equal fields are common; some that only bytes order right. */
const keyPart = fc.constantFrom('', 'a', 'b', 'B', '-', 'é', '\uff61', '😀', '10', '9', 'a b');
const key = fc
  .tuple(keyPart, keyPart)
  .filter(([x, y]) => x !== '' || y !== '')
  .map(([x, y]) => [x, y]);
const value: fc.Arbitrary<Value> = fc.oneof(
  fc.constant<Value>({ type: 'null' }),
  fc.constantFrom('', 'NULL', 'x', 'y').map((text): Value => ({ type: 'text', text })),
);
const time = fc.constantFrom<Instant>(at('11:59:59.999999'), at('12:00'), at('12:30'), at('13:00'));
const row = fc
  .tuple(key, value, value, time)
  .map(([parts, a, b, stamped]) => record(parts, { a, b }, stamped));
const rows = fc.array(row, { maxLength: 25 });
const plan = fc.constantFrom('merge' as const, 'lookup' as const);
const pageSize = fc.integer({ min: 1, max: 7 });

function read(
  source: readonly SideRecord[],
  downstream: readonly SideRecord[],
  how: { plan: 'merge' | 'lookup'; pageSize: number },
): Promise<ReadResult> {
  return readWindow({
    window: NOON,
    source: new ArraySide('source', source, how),
    downstream: new ArraySide('downstream', downstream, how),
    plan: how.plan,
    rules,
    digestKey: 'k',
    signal: new AbortController().signal,
  });
}

const inWindow = (each: SideRecord) => each.time !== null && each.time >= NOON.from && each.time < NOON.to;

/** The same question answered the slow way, by looking at everything for every key. */
function naive(source: readonly SideRecord[], downstream: readonly SideRecord[]): Map<string, DiffKind> {
  const kinds = new Map<string, DiffKind>();
  for (const { key: wanted } of [...source, ...downstream].filter(inWindow)) {
    const same = (each: SideRecord) => keyText(each.key) === keyText(wanted);
    const [left, right] = [source.filter(same), downstream.filter(same)];
    const kind =
      left.length > 1 || right.length > 1
        ? 'duplicate'
        : right.length === 0
          ? 'missing'
          : left.length === 0
            ? 'extra'
            : FIELDS.some(
                  (name) => JSON.stringify(left[0]?.fields[name]) !== JSON.stringify(right[0]?.fields[name]),
                )
              ? 'mismatched'
              : undefined;
    if (kind !== undefined) kinds.set(keyText(wanted), kind);
  }
  return kinds;
}

function kindsOf(result: ReadResult): Map<string, DiffKind> {
  return new Map(result.suspects.map((finding) => [keyText(finding.key), finding.kind]));
}

/** One record per key, in the window or beside it. */
const anyTime = fc.uniqueArray(row, { selector: (each) => keyText(each.key), maxLength: 25 });
/** One record per key, all of them in the window. */
const uniqueRows = fc
  .uniqueArray(row, { selector: (each) => keyText(each.key), minLength: 2, maxLength: 25 })
  .map((list) => list.map((each) => ({ ...each, time: at('12:30') })));

describe('the diff of any two sides', () => {
  it('is the naive one by both plans, wherever the records stand in time', async () => {
    await fc.assert(
      fc.asyncProperty(anyTime, anyTime, plan, pageSize, async (source, downstream, name, size) => {
        const result = await read(source, downstream, { plan: name, pageSize: size });
        expect(kindsOf(result)).toEqual(naive(source, downstream));
      }),
      { numRuns: 300 },
    );
  });

  it('is the naive one by both plans, duplicates included', async () => {
    await fc.assert(
      fc.asyncProperty(rows, rows, pageSize, async (source, downstream, size) => {
        const [left, right] = [source, downstream].map((list) =>
          list.map((each) => ({ ...each, time: at('12:30') })),
        );
        const expected = naive(left ?? [], right ?? []);
        for (const name of ['merge', 'lookup'] as const) {
          const result = await read(left ?? [], right ?? [], { plan: name, pageSize: size });
          expect(kindsOf(result)).toEqual(expected);
          const keys = new Set((left ?? []).map((each) => keyText(each.key)));
          expect(result.counts.matched).toBe([...keys].filter((text) => !expected.has(text)).length);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('is empty for equal sides, in whatever order they come', async () => {
    await fc.assert(
      fc.asyncProperty(uniqueRows, plan, pageSize, fc.nat(), async (list, name, size, turn) => {
        const turned = [...list.slice(turn % list.length), ...list.slice(0, turn % list.length)];
        const result = await read(list, turned, { plan: name, pageSize: size });
        expect(result.suspects).toEqual([]);
        expect(result.counts).toMatchObject({ source: list.length, matched: list.length });
      }),
      { numRuns: 200 },
    );
  });

  it('finds every planted mutant', async () => {
    const mutation = fc.constantFrom('missing', 'extra', 'a', 'b', 'twice', 'swapped' as const);
    await fc.assert(
      fc.asyncProperty(
        uniqueRows,
        mutation,
        plan,
        pageSize,
        fc.nat(),
        async (list, kind, name, size, where) => {
          const [first, second] = [where % list.length, (where + 1) % list.length];
          const { source, downstream, expected } = mutate(list, kind, first, second);
          const result = await read(source, downstream, { plan: name, pageSize: size });
          expect([...kindsOf(result)].sort()).toEqual(expected.sort());
        },
      ),
      { numRuns: 500 },
    );
  });
});

function mutate(list: readonly SideRecord[], kind: string, first: number, second: number) {
  const edit = (each: SideRecord, name: string): SideRecord => ({
    ...each,
    fields: { ...each.fields, [name]: { type: 'text', text: 'mutant' } },
  });
  const text = keyText(list[first]?.key ?? []);
  const other = keyText(list[second]?.key ?? []);
  const without = list.filter((_, i) => i !== first);
  switch (kind) {
    case 'missing':
      return { source: list, downstream: without, expected: [[text, 'missing']] };
    case 'extra':
      return { source: without, downstream: list, expected: [[text, 'extra']] };
    case 'twice':
      return {
        source: list,
        downstream: list.flatMap((each, i) => (i === first ? [each, each] : [each])),
        expected: [[text, 'duplicate']],
      };
    case 'swapped':
      // Two rows changed alike: sums and XORs of rows would cancel out.
      return {
        source: list,
        downstream: list.map((each, i) => (i === first || i === second ? edit(each, 'a') : each)),
        expected: [
          [text, 'mismatched'],
          [other, 'mismatched'],
        ],
      };
    default:
      return {
        source: list,
        downstream: list.map((each, i) => (i === first ? edit(each, kind) : each)),
        expected: [[text, 'mismatched']],
      };
  }
}

describe('the order of keys', () => {
  it('is the order of their UTF-8 bytes', () => {
    const anyText = fc.string({ unit: 'binary' });
    fc.assert(
      fc.property(anyText, anyText, (a, b) => {
        expect(Math.sign(compareKeys([a], [b]))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
  });

  it('is asserted on each stream of a merge', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(key, { minLength: 2, maxLength: 8 }), async (keys) => {
        const list = keys.map((each) => record(each));
        const sorted = keys.every((each, i) => i === 0 || compareKeys(keys[i - 1] ?? [], each) <= 0);
        async function* pages() {
          for (const each of list) yield [each];
        }
        async function* none() {}
        const drain = async () => {
          let events = 0;
          for await (const event of mergeStreams(pages(), none())) events += event.source.length;
          return events;
        };
        if (sorted) expect(await drain()).toBe(list.length);
        else await expect(drain()).rejects.toMatchObject({ code: 'TRU_SIDE_ORDER', side: 'source' });
      }),
    );
  });
});

describe('chunks of any window', () => {
  it('tile it without gap and overlap', () => {
    const ms = fc.integer({ min: 0, max: 50_000 });
    fc.assert(
      fc.property(
        ms,
        ms,
        fc.integer({ min: 100, max: 9_000 }),
        fc.integer({ min: 0, max: 999_999 }),
        (a, b, size, us) => {
          const start = `${at('10:00').slice(0, 20)}${String(us).padStart(6, '0')}Z` as Instant;
          const window = { from: addMillis(start, Math.min(a, b)), to: addMillis(start, Math.max(a, b)) };
          const pieces = chunks(window, size);
          const edges = pieces.flatMap(({ from, to }) => [from, to]);
          expect(edges.filter((_, i) => i % 2 === 0).slice(1)).toEqual(
            edges.filter((_, i) => i % 2 === 1).slice(0, -1),
          );
          expect(pieces.every(({ from, to }) => from < to)).toBe(true);
          if (pieces.length > 0) expect([edges[0], edges.at(-1)]).toEqual([window.from, window.to]);
          else expect(window.from).toBe(window.to);
        },
      ),
    );
  });
});

describe('remembered keys', () => {
  it('are never forgotten', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' }), { maxLength: 200 }), (keys) => {
        const seen = new SeenKeys();
        for (const each of keys) seen.add(each);
        expect(keys.every((each) => seen.add(each))).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  it('are seldom invented', () => {
    const seen = new SeenKeys();
    const invented = Array.from({ length: 100_000 }, (_, i) => seen.add(`["order-${i}"]`)).filter(
      Boolean,
    ).length;
    expect(invented).toBeLessThan(200);
  });
});

describe('a canonical decimal', () => {
  it('has one text for one number, however it is written', () => {
    fc.assert(
      fc.property(fc.bigInt(-(10n ** 30n), 10n ** 30n), fc.integer({ min: 0, max: 12 }), (units, scale) => {
        const text = canonicalDecimal(`${units}e-${scale}`);
        expect(canonicalDecimal(`${units}000e-${scale + 3}`)).toBe(text);
        expect(canonicalDecimal(text ?? '')).toBe(text);
        const [whole = '', fraction = ''] = (text ?? '').split('.');
        expect(BigInt(`${whole}${fraction.padEnd(scale, '0')}`)).toBe(units);
      }),
    );
  });
});

describe('a canonical instant', () => {
  it('is the same by the quick way and by the calendar, for every day', () => {
    const numbers = fc.tuple(
      fc.integer({ min: 1, max: 9999 }),
      fc.integer({ min: 0, max: 13 }),
      fc.integer({ min: 0, max: 32 }),
      fc.integer({ min: 0, max: 24 }),
      fc.integer({ min: 0, max: 999_999 }),
    );
    fc.assert(
      fc.property(numbers, ([year, month, day, hour, us]) => {
        const pad = (n: number, width: number) => String(n).padStart(width, '0');
        const text = `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)} ${pad(hour, 2)}:59:00.${pad(us, 6)}`;
        const byCalendar = parseInstant(`${text}-00:00`);
        const expected = byCalendar === undefined ? 'undecided' : byCalendar;
        const quick = canonicalInstant(`${text}+00`);
        const local = canonicalInstant(text, 'UTC');
        expect('text' in quick ? quick.text : 'undecided').toBe(expected);
        expect('text' in local ? local.text : 'undecided').toBe(expected);
      }),
      { numRuns: 1000 },
    );
  });
});
