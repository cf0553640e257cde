import { describe, expect, it } from 'vitest';
import { ruleSchema } from '../../../src/config/schema.ts';
import { FrameBuffer } from '../../../src/reconcile/raw/frame-buffer.ts';
import {
  fitLayouts,
  type RawColumn,
  type RawKeyColumn,
  type RawLayout,
} from '../../../src/reconcile/raw/layout.ts';
import { choosePlan, type ReadInput, readWindow } from '../../../src/reconcile/read-window.ts';
import type { SideRecord, Value } from '../../../src/reconcile/record.ts';
import { type RawSource, SideError } from '../../../src/reconcile/side.ts';
import { ArraySide } from '../../support/array-side.ts';
import { copyMessages, textPayload } from '../../support/copy-frames.ts';
import { at, NOON, record } from '../../support/records.ts';

const TEXT: RawColumn = { name: 'state', native: 'text', oid: 25, type: 'text', binary: true, padded: false };
const KEY: RawKeyColumn = { ...TEXT, name: 'k', kind: 'text' };
const LAYOUT: RawLayout = { keys: [KEY], fields: [TEXT] };
const rules = { state: ruleSchema.parse('text') };

interface Faults {
  readonly layout?: RawLayout | string;
  readonly opening?: Error;
  /** Thrown instead of the end. */
  readonly ending?: Error;
  readonly reversed?: boolean;
}

/** A side over an array whose window also comes as the bytes of a copy. */
class RawArraySide extends ArraySide {
  readonly ends: ('closed' | 'discarded')[] = [];
  readonly raw: RawSource;

  constructor(label: string, records: readonly SideRecord[], faults: Faults = {}) {
    super(label, records, { pageSize: 2 });
    this.raw = {
      layout: () => Promise.resolve(faults.layout ?? LAYOUT),
      open: (window) => this.#open(window, faults),
    };
  }

  async #open(window: typeof NOON, { opening, ending, reversed }: Faults) {
    if (opening !== undefined) throw opening;
    const rows: Buffer[] = [];
    for await (const page of this.scan(window, new AbortController().signal)) {
      for (const { key, fields } of page) {
        const state = fields['state'];
        rows.push(
          textPayload([key[0] ?? null, state === undefined || state.type === 'null' ? null : state.text]),
        );
      }
    }
    const messages = copyMessages('text', reversed ? rows.reverse() : rows);
    const frames = new FrameBuffer('text');
    const { ends } = this;
    return {
      frames,
      whole: false,
      async more() {
        const next = messages.shift();
        if (ending !== undefined && next?.[0] === 'c'.charCodeAt(0)) throw ending;
        if (next !== undefined) frames.append(next);
      },
      flow() {},
      read(payload: Buffer): SideRecord {
        const [key = '', state = ''] = payload.toString('utf8').trimEnd().split('\t');
        const value: Value = state === '\\N' ? { type: 'null' } : { type: 'text', text: state };
        return { key: [key], time: null, fields: { state: value } };
      },
      async close() {
        ends.push('closed');
      },
      discard() {
        ends.push('discarded');
      },
    };
  }
}

const row = (key: string, state = 'PAID', time = at('12:30')) => record(key, { state }, time);
const TEXT_LAYOUT: RawLayout = { keys: [KEY], fields: [{ ...TEXT, binary: false }] };
const pair = (source: readonly SideRecord[], downstream: readonly SideRecord[], faults: Faults = {}) => ({
  source: new RawArraySide('source', source, { layout: TEXT_LAYOUT }),
  downstream: new RawArraySide('downstream', downstream, { layout: TEXT_LAYOUT, ...faults }),
});
const read = (input: Pick<ReadInput, 'source' | 'downstream'> & Partial<ReadInput>) =>
  readWindow({
    window: NOON,
    plan: 'auto',
    rules,
    digestKey: 'k',
    signal: new AbortController().signal,
    ...input,
  });

describe('reading a window by raw', () => {
  it('is chosen where both sides give their bytes, and says why', async () => {
    const sides = pair([row('a')], [row('a')]);
    const result = await read(sides);
    expect(result.plan).toEqual({
      name: 'raw',
      why: expect.stringContaining('equal bytes are equal values'),
    });
    expect([sides.source.ends, sides.downstream.ends]).toEqual([['closed'], ['closed']]);
  });

  it('looks at the other side before it judges, wherever the record stands in time', async () => {
    const { source, downstream } = pair(
      [row('a'), row('b', 'PAID', at('12:59')), row('c'), row('d')],
      [row('a'), row('b', 'PAID', at('13:00')), row('c', 'NEW'), row('e', 'PAID', at('12:00'))],
    );
    const result = await read({ source, downstream });
    expect(result.suspects.map(({ key, kind }) => [key[0], kind]).sort()).toEqual([
      ['c', 'mismatched'],
      ['d', 'missing'],
      ['e', 'extra'],
    ]);
    // From a lookup, since these rows hold only what is compared.
    expect(result.suspects.every((finding) => (finding.source ?? finding.downstream)?.time !== null)).toBe(
      true,
    );
    expect(result.counts).toMatchObject({ source: 4, downstream: 3, matched: 2 });
  });

  it('falls back to lookup when a side breaks its order, and only where it may choose', async () => {
    const rows = [row('a'), row('b'), row('c')];
    const sides = pair(rows, rows, { reversed: true });
    const result = await read(sides);
    expect(result.plan).toEqual({ name: 'lookup', why: expect.stringContaining('the raw ended') });
    expect(result.suspects).toEqual([]);
    expect([sides.source.ends, sides.downstream.ends]).toEqual([['discarded'], ['discarded']]);
    await expect(read({ ...pair(rows, rows, { reversed: true }), plan: 'raw' })).rejects.toMatchObject({
      code: 'TRU_SIDE_ORDER',
      side: 'downstream',
    });
  });

  it('passes a side’s error on and gives up both streams', async () => {
    const lost = new SideError('TRU_SIDE_UNREACHABLE', 'downstream', 'gone', { transient: true });
    const ending = pair([row('a'), row('b')], [row('a')], { ending: lost });
    await expect(read(ending)).rejects.toBe(lost);
    expect([ending.source.ends, ending.downstream.ends]).toEqual([['discarded'], ['discarded']]);
    const opening = pair([row('a')], [], { opening: lost });
    await expect(read(opening)).rejects.toBe(lost);
    expect(opening.source.ends).toEqual(['discarded']);
  });

  it('stops when more differs than may be kept', async () => {
    const { source, downstream } = pair([row('a'), row('b'), row('c')], []);
    await expect(read({ source, downstream, maxSuspects: 2 })).rejects.toMatchObject({
      code: 'TRU_TOO_MANY_SUSPECTS',
    });
  });

  it('gives way to merge with the reason, and is refused when asked for', async () => {
    const { signal } = new AbortController();
    const sides = pair([], [], { layout: 'state has a value map' });
    expect(await choosePlan({ ...sides, plan: 'auto', signal })).toEqual({
      name: 'merge',
      why: expect.stringContaining('not raw, since downstream state has a value map'),
    });
    await expect(choosePlan({ ...sides, plan: 'raw', signal })).rejects.toMatchObject({ code: 'TRU_NO_RAW' });
    const without = { source: sides.source, downstream: new ArraySide('downstream', []) };
    await expect(choosePlan({ ...without, plan: 'raw', signal })).rejects.toThrow(/downstream does not give/);
  });
});

describe('two layouts', () => {
  const field = (over: Partial<RawColumn>): RawLayout => ({ keys: [KEY], fields: [{ ...TEXT, ...over }] });
  const key = (over: Partial<RawKeyColumn>): RawLayout => ({ keys: [{ ...KEY, ...over }], fields: [TEXT] });
  const int4 = { oid: 23, native: 'integer', type: 'integer', kind: 'integer' } as const;
  const int8 = { ...int4, oid: 20, native: 'bigint' };
  const time = { oid: 1184, native: 'timestamptz', type: 'instant', kind: 'time' } as const;

  it.each([
    ['of the same simple types fit in binary', LAYOUT, LAYOUT, { format: 'binary', parts: ['bytes'] }],
    ['with integer keys fit in binary', key(int4), key(int4), { format: 'binary', parts: ['signed'] }],
    [
      'with integer keys of two widths fit in text',
      key(int4),
      key(int8),
      { format: 'text', parts: ['digits'] },
    ],
    ['with times as keys fit in binary', key(time), key(time), { format: 'binary', parts: ['signed'] }],
    [
      'with a type that has no binary reading fit in text',
      field({ binary: false }),
      field({ binary: false }),
      { format: 'text', parts: ['bytes'] },
    ],
    ['with text and varchar fit in text', LAYOUT, field({ oid: 1043 }), { format: 'text', parts: ['bytes'] }],
  ] as const)('%s', (_, a, b, fit) => {
    expect(fitLayouts(a, b)).toEqual(fit);
  });

  it.each([
    [
      'text and an integer',
      LAYOUT,
      field({ oid: 23, type: 'integer', native: 'integer' }),
      /text at the source and integer downstream/,
    ],
    [
      'json and jsonb',
      field({ oid: 114, type: 'json' }),
      field({ oid: 3802, type: 'json' }),
      /different bytes/,
    ],
    ['padded and plain text', field({ oid: 1042, padded: true }), LAYOUT, /different bytes/],
    [
      'local times and instants',
      field({ oid: 1114, type: 'instant' }),
      field({ oid: 1184, type: 'instant' }),
      /different bytes/,
    ],
    [
      'float and real',
      field({ oid: 700, type: 'float' }),
      field({ oid: 701, type: 'float' }),
      /different bytes/,
    ],
    [
      'times as keys beside columns that need text',
      { ...key(time), fields: [{ ...TEXT, binary: false }] },
      { ...key(time), fields: [{ ...TEXT, binary: false }] },
      /key part k is timestamptz/,
    ],
  ])('do not fit with %s', (_, a, b, words) => {
    expect(fitLayouts(a, b)).toMatch(words);
  });
});
