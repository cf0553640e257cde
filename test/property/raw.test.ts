import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SideName } from '../../src/reconcile/diff.ts';
import { FrameCompare, type RawStep } from '../../src/reconcile/raw/compare-frames.ts';
import { FrameBuffer, FrameError, type RawFormat } from '../../src/reconcile/raw/frame-buffer.ts';
import { compareFramesBy, type KeyPart } from '../../src/reconcile/raw/frame-key.ts';
import { binaryPayload, type Cell, copyMessages, message, textPayload } from '../support/copy-frames.ts';

/** How keys are written: names of kinds, and how each sorts in a format. */
interface Shape {
  readonly format: RawFormat;
  readonly kinds: readonly ('text' | 'integer')[];
}
type Dice = () => number;

/** Endless numbers below `sides`, the same for the same seed. */
function dice(sides: number): fc.Arbitrary<Dice> {
  return fc.integer({ min: 1, max: 2 ** 31 - 1 }).map((seed) => {
    let state = seed;
    return () => {
      state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9;
      return (state >>> 8) % sides;
    };
  });
}

/** The key's cells and one more. */
type Row = readonly Cell[];

const shape: fc.Arbitrary<Shape> = fc.record({
  format: fc.constantFrom('binary' as const, 'text' as const),
  kinds: fc.constantFrom(['text'], ['integer'], ['text', 'integer'], ['integer', 'text'], ['text', 'text']),
}) as fc.Arbitrary<Shape>;

/** Few values, so that keys meet; some that only bytes order right, and some that the text format escapes. */
const TEXTS = ['', 'a', 'a\t', 'a\n', 'a b', 'a\\', 'aA', 'ab', 'B', 'é', '\uff61', '😀', '\\N', 'N', 'b\tc'];
const NUMBERS = [0, 1, 9, 10, 255, 256, -1, -9, -10, -256, 2 ** 31 - 1, -(2 ** 31)];
const value = fc.constantFrom<Cell[]>(null, '', 'x', 'y', '\t', 'a longer value that fills some more bytes');
const seldomNull = (cell: fc.Arbitrary<Cell>) =>
  fc.oneof({ weight: 12, arbitrary: cell }, { weight: 1, arbitrary: fc.constant<Cell>(null) });

const rowOf = ({ kinds }: Shape): fc.Arbitrary<Row> =>
  fc.tuple(
    ...kinds.map((kind) =>
      seldomNull(kind === 'text' ? fc.constantFrom(...TEXTS) : fc.constantFrom(...NUMBERS)),
    ),
    value,
  );

/** The second side is the first with some rows left out, changed, doubled or added. */
const sides = shape.chain((how) =>
  fc
    .tuple(fc.array(rowOf(how), { maxLength: 20 }), fc.array(rowOf(how), { maxLength: 4 }), dice(12), value)
    .map(([rows, added, fates, other]) => {
      const changed = rows.flatMap((row): Row[] => {
        const fate = fates();
        if (fate === 0) return [];
        if (fate === 1) return [[...row.slice(0, -1), other]];
        return fate === 2 ? [row, row] : [row];
      });
      return { how, source: sorted(how, rows), downstream: sorted(how, [...changed, ...added]) };
    }),
);

function keyOf({ kinds }: Shape, row: Row): readonly Cell[] {
  return row.slice(0, kinds.length);
}

function isUsable(key: readonly Cell[]): boolean {
  return !key.includes(null) && key.some((cell) => cell !== '');
}

/** The order of the server: bytes of text, numbers as such, null last. */
function compareKeys(a: readonly Cell[], b: readonly Cell[]): number {
  for (const [i, x] of a.entries()) {
    const y = b[i] ?? null;
    if (x === null || y === null) {
      if (x !== y) return x === null ? 1 : -1;
    } else if (typeof x === 'number' && typeof y === 'number') {
      if (x !== y) return x - y;
    } else {
      const order = Buffer.compare(Buffer.from(String(x)), Buffer.from(String(y)));
      if (order !== 0) return order;
    }
  }
  return 0;
}

function sorted(how: Shape, rows: readonly Row[]): Row[] {
  return [...rows].sort((a, b) => compareKeys(keyOf(how, a), keyOf(how, b)));
}

const payloadOf = ({ format }: Shape, row: Row) =>
  format === 'binary' ? binaryPayload(row) : textPayload(row);

function partsOf({ format, kinds }: Shape): KeyPart[] {
  return kinds.map((kind) => (kind === 'text' ? 'bytes' : format === 'binary' ? 'signed' : 'digits'));
}

interface Seen {
  matched: number;
  readonly unusable: Record<SideName, number>;
  readonly events: string[];
}

/** The answer by looking at all rows of each key. */
function naive(how: Shape, source: readonly Row[], downstream: readonly Row[]): Seen {
  const seen: Seen = { matched: 0, unusable: { source: 0, downstream: 0 }, events: [] };
  const groups = new Map<string, { key: readonly Cell[]; source: Row[]; downstream: Row[] }>();
  for (const [side, rows] of [
    ['source', source],
    ['downstream', downstream],
  ] as const) {
    for (const row of rows) {
      const key = keyOf(how, row);
      if (!isUsable(key)) {
        seen.unusable[side] += 1;
        continue;
      }
      const text = JSON.stringify(key);
      const group = groups.get(text) ?? { key, source: [], downstream: [] };
      group[side].push(row);
      groups.set(text, group);
    }
  }
  for (const group of [...groups.values()].sort((a, b) => compareKeys(a.key, b.key))) {
    const [left, right] = [group.source, group.downstream].map((rows) =>
      rows.map((row) => payloadOf(how, row)),
    );
    const hex = JSON.stringify([left?.map(toHex), right?.map(toHex)]);
    if (left?.length === 1 && right?.length === 1 && left[0]?.equals(right[0] ?? Buffer.alloc(0))) {
      seen.matched += 1;
    } else seen.events.push(hex);
  }
  return seen;
}

const toHex = (bytes: Buffer) => bytes.toString('hex');

/** A side that arrives in pieces whenever more is asked for, or unasked. */
class Arriving {
  readonly frames: FrameBuffer;
  readonly #bytes: Buffer;
  readonly #sizes: Dice;
  #at = 0;
  rest: Buffer | null = null;

  constructor(format: RawFormat, messages: readonly Buffer[], sizes: Dice, capacity = 64) {
    this.frames = new FrameBuffer(format, capacity);
    this.#bytes = Buffer.concat(messages);
    this.#sizes = sizes;
  }

  /** False when nothing is left. */
  arrive(): boolean {
    if (this.#at >= this.#bytes.length || this.rest !== null) return false;
    const to = Math.min(this.#bytes.length, this.#at + this.#sizes());
    this.rest = this.frames.append(this.#bytes.subarray(this.#at, to));
    this.#at = to;
    return true;
  }
}

function run(how: Shape, streams: Record<SideName, Arriving>, eager: Dice): Seen & { last: RawStep } {
  const order = compareFramesBy(how.format, partsOf(how));
  const compare = new FrameCompare(streams.source.frames, streams.downstream.frames, order, (side) => {
    throw new Error(`disorder at the ${side}`);
  });
  const seen: Seen = { matched: 0, unusable: { source: 0, downstream: 0 }, events: [] };
  for (;;) {
    const step = compare.next();
    if (step.step === 'equal') seen.matched += step.keys;
    else if (step.step === 'unusable') seen.unusable[step.side] += 1;
    else if (step.step === 'rows') {
      seen.events.push(JSON.stringify([step.source.map(toHex), step.downstream.map(toHex)]));
    } else if (step.step === 'end' || !streams[step.side].arrive()) return { ...seen, last: step };
    for (const side of ['source', 'downstream'] as const) {
      if (eager() === 0) streams[side].arrive();
    }
  }
}

const pieces = dice(420).map((roll) => () => (roll() % 2 === 0 ? 1 + (roll() % 12) : 1 + roll()));
const eagerness = dice(4);

function stream(how: Shape, rows: readonly Row[], sizes: Dice, noise: Dice, capacity?: number): Arriving {
  const messages = copyMessages(
    how.format,
    rows.map((row) => payloadOf(how, row)),
  );
  return new Arriving(how.format, withNoise(messages, noise), sizes, capacity);
}

/** What a server may say in between: notices, changed settings. */
function withNoise(messages: readonly Buffer[], noise: Dice): Buffer[] {
  const said = [message('N', 'SNOTICE\0'), message('S', 'TimeZone\0UTC\0')];
  return messages.flatMap((each, i) => {
    const [beside] = noise() === 0 ? [said[i % 2] ?? each] : [];
    return beside === undefined ? [each] : [beside, each];
  });
}

const noise = dice(9);

describe('the raw comparison of any two streams', () => {
  it('is the naive one, however the bytes arrive', () => {
    fc.assert(
      fc.property(
        sides,
        pieces,
        pieces,
        eagerness,
        noise,
        ({ how, source, downstream }, p, q, eager, said) => {
          const streams = {
            source: stream(how, source, p, said),
            downstream: stream(how, downstream, q, said),
          };
          const { last, ...seen } = run(how, streams, eager);
          expect(last).toEqual({ step: 'end' });
          expect(seen).toEqual(naive(how, source, downstream));
          for (const [side, rows] of [
            ['source', source],
            ['downstream', downstream],
          ] as const) {
            expect(streams[side].frames.rows).toBe(rows.length);
            expect(streams[side].rest?.[0]).toBe('c'.charCodeAt(0));
          }
        },
      ),
      { numRuns: 10_000 },
    );
  }, 120_000);

  it('never ends, and calls nothing missing, when a side breaks off', () => {
    fc.assert(
      fc.property(sides, fc.nat(), pieces, eagerness, ({ how, source, downstream }, where, p, eager) => {
        const messages = copyMessages(
          how.format,
          downstream.map((row) => payloadOf(how, row)),
        );
        const kept = messages.slice(0, 3 + (where % (downstream.length + 1)));
        const broken = new Arriving(how.format, [...kept, message('E', 'SERROR\0'), message('Z', 'E')], p);
        const streams = { source: stream(how, source, p, eager), downstream: broken };
        const { last, events } = run(how, streams, eager);
        expect(last).toEqual({ step: 'more', side: 'downstream' });
        expect(broken.frames.state).toBe('failed');
        const truth = naive(how, source, downstream);
        expect(truth.events.slice(0, events.length)).toEqual(events);
      }),
      { numRuns: 2_000 },
    );
  });

  it('ends with the first row that is out of order, on either side', () => {
    const unsorted = shape.chain((how) =>
      fc.record({ how: fc.constant(how), rows: fc.array(rowOf(how), { minLength: 2, maxLength: 6 }) }),
    );
    fc.assert(
      fc.property(
        unsorted,
        fc.boolean(),
        fc.boolean(),
        pieces,
        eagerness,
        ({ how, rows }, mirrored, swap, p, eager) => {
          const disordered = stream(how, rows, p, eager);
          const other = stream(how, mirrored ? rows : [], p, eager);
          const streams = swap
            ? { source: other, downstream: disordered }
            : { source: disordered, downstream: other };
          if (isInOrder(how, rows)) expect(run(how, streams, eager).last).toEqual({ step: 'end' });
          else expect(() => run(how, streams, eager)).toThrow(/disorder/);
        },
      ),
      { numRuns: 3_000 },
    );
  });

  it('holds for rows larger than the buffer, which shrinks again', () => {
    const sizes = fc.array(fc.constantFrom(1, 100, 300_000, 700_000, 3_000_000), {
      minLength: 1,
      maxLength: 6,
    });
    const how: Shape = { format: 'binary', kinds: ['text'] };
    const chunks = dice(4).map((roll) => () => [65_536, 65_536, 8_192, 1_000_000][roll()] ?? 1);
    fc.assert(
      fc.property(sizes, fc.nat(), chunks, eagerness, (lengths, where, p, eager) => {
        const source = lengths.map((length, i): Row => [`k${i}`, 'x'.repeat(length)]);
        const downstream = source.map(
          (row, i): Row => (i === where % source.length ? [row[0] ?? '', 'y'] : row),
        );
        const small = Array.from({ length: 8000 }, (_, i): Row => [`l${10_000 + i}`, 'x'.repeat(150)]);
        const streams = {
          source: stream(how, [...source, ...small], p, eager, 512 * 1024),
          downstream: stream(how, [...downstream, ...small], p, eager, 512 * 1024),
        };
        const { matched, events, last } = run(how, streams, eager);
        expect({ matched, events: events.length, last }).toEqual({
          matched: source.length - 1 + small.length,
          events: 1,
          last: { step: 'end' },
        });
        for (const side of ['source', 'downstream'] as const) {
          expect(streams[side].frames.bytes.length).toBe(512 * 1024);
        }
      }),
      { numRuns: 15 },
    );
  });

  it('finds a change of one byte in a long run of equal rows', () => {
    const how: Shape = { format: 'binary', kinds: ['integer'] };
    const rows = Array.from({ length: 3000 }, (_, i): Row => [i, `value ${i} of a row`]);
    fc.assert(
      fc.property(
        fc.nat({ max: 2999 }),
        dice(2).map((roll) => () => [65_536, 1_000][roll()] ?? 1),
        eagerness,
        (at, p, eager) => {
          const changed = rows.map((row, i): Row => (i === at ? [i, `value ${i} of a roW`] : row));
          const streams = { source: stream(how, rows, p, eager), downstream: stream(how, changed, p, eager) };
          const { matched, events } = run(how, streams, eager);
          expect([matched, events.length]).toEqual([2999, 1]);
        },
      ),
      { numRuns: 30 },
    );
  });
});

function isInOrder(how: Shape, rows: readonly Row[]): boolean {
  let previous: readonly Cell[] | undefined;
  let hidden = false;
  for (const row of rows) {
    const key = keyOf(how, row);
    if (!isUsable(key)) {
      hidden = true;
      continue;
    }
    if (previous !== undefined) {
      const order = compareKeys(previous, key);
      // A key that goes on behind an unusable one would be judged twice.
      if (order > 0 || (order === 0 && hidden)) return false;
    }
    previous = key;
    hidden = false;
  }
  return true;
}

describe('a stream that is no copy', () => {
  it('is refused', () => {
    expect(() => new FrameBuffer('text').append(message('D', 'x'))).toThrow(FrameError);
    expect(() => new FrameBuffer('binary').append(message('d', 'no header'))).toThrow(/header/);
    const short = message('d', 'x');
    short.writeUInt32BE(3, 1);
    expect(() => new FrameBuffer('text').append(short)).toThrow(/length 3/);
  });
});
