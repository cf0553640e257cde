import { describe, expect, it } from 'vitest';
import { ruleSchema } from '../../../src/config/schema.ts';
import { OrderError } from '../../../src/reconcile/diff.ts';
import { UNUSABLE_KEY } from '../../../src/reconcile/key.ts';
import { lookBoth } from '../../../src/reconcile/look.ts';
import { type ReadInput, readWindow } from '../../../src/reconcile/read-window.ts';
import { displayKey, type SideRecord } from '../../../src/reconcile/record.ts';
import { SideError } from '../../../src/reconcile/side.ts';
import { ArraySide, type ArraySideOptions } from '../../support/array-side.ts';
import { at, NOON, record } from '../../support/records.ts';

const rules = { state: ruleSchema.parse('text') };
const row = (key: string, state = 'PAID', time = at('12:30')) => record(key, { state }, time);
const sides = (
  source: readonly SideRecord[],
  downstream: readonly SideRecord[],
  options: ArraySideOptions = {},
) => ({
  source: new ArraySide('source', source, options),
  downstream: new ArraySide('downstream', downstream, options),
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
const kindsOf = (result: Awaited<ReturnType<typeof read>>) =>
  Object.fromEntries(result.suspects.map((finding) => [displayKey(finding.key), finding.kind]));

describe.each(['merge', 'lookup'] as const)('reading a window by %s', (plan) => {
  it('finds each kind of difference and counts it', async () => {
    const result = await read({
      plan,
      ...sides(
        [row('a'), row('b'), row('c'), row('d'), row('d')],
        [row('a'), row('b', 'NEW'), row('d'), row('e')],
        { pageSize: 2 },
      ),
    });
    expect(kindsOf(result)).toEqual({ b: 'mismatched', c: 'missing', d: 'duplicate', e: 'extra' });
    expect(result.counts).toEqual({
      source: 5,
      downstream: 4,
      matched: 1,
      missing: 1,
      extra: 1,
      mismatched: 1,
      duplicate: 1,
      undecided: 0,
    });
  });

  it('counts the keys that match only by a rule, by field and rule', async () => {
    const result = await read({
      plan,
      rules: { state: ruleSchema.parse({ type: 'text', ignoreCase: true, map: { DONE: 'paid' } }) },
      ...sides(
        [row('a', 'PAID'), row('b', 'PAID'), row('c', 'paid'), row('d', 'DONE'), row('e', 'PAID')],
        [row('a', 'paid'), row('b', 'Paid'), row('c', 'paid'), row('d', 'paid'), row('e', 'NEW')],
        { pageSize: 2 },
      ),
    });
    expect(result.counts).toMatchObject({ matched: 4, mismatched: 1 });
    expect(result.forgiven).toEqual([
      { field: 'state', rule: 'text, ignoring case', count: 2 },
      { field: 'state', rule: 'value map', count: 1 },
    ]);
  });

  it('does not call a record missing that is stamped just outside the window', async () => {
    const result = await read({
      plan,
      ...sides(
        [row('a', 'PAID', at('12:59:59.99')), row('b', 'PAID', at('12:00'))],
        [row('a', 'PAID', at('13:00:00.03')), row('b', 'PAID', at('11:59:59.99'))],
      ),
    });
    expect(result.suspects).toEqual([]);
    expect(result.counts).toMatchObject({ source: 2, downstream: 0, matched: 2 });
  });

  it('compares in full a record that only the downstream stamps inside the window', async () => {
    const result = await read({
      plan,
      ...sides(
        [row('a', 'PAID', at('09:00')), row('b', 'PAID', at('09:00'))],
        [row('a', 'EDITED'), row('b')],
      ),
    });
    expect(kindsOf(result)).toEqual({ a: 'mismatched' });
    expect(result.counts).toMatchObject({ source: 0, matched: 0, downstream: 2 });
  });

  it('counts records without a usable key as undecided and names them once', async () => {
    const nameless = record(UNUSABLE_KEY, { state: 'PAID' });
    const result = await read({ plan, ...sides([nameless, row('a'), nameless], [row('a'), nameless]) });
    expect(result.counts).toMatchObject({ source: 3, matched: 1, undecided: 3 });
    expect(result.undecided).toEqual([
      { key: [], reason: expect.stringContaining('2 at the source, 1 downstream') },
    ]);
  });

  it('passes a side’s error on, and closes both scans', async () => {
    const pair = sides([row('a'), row('b'), row('c')], [row('a'), row('b'), row('c')], { pageSize: 1 });
    const lost = new SideError('TRU_SIDE_UNREACHABLE', 'downstream', 'gone', { transient: true });
    pair.downstream.lookup = () => Promise.reject(lost);
    pair.downstream.scan = async function* () {
      yield [row('a')];
      throw lost;
    };
    await expect(read({ plan, ...pair })).rejects.toBe(lost);
    expect(pair.source.openScans).toBe(0);
  });

  it('stops when more differs than may be kept', async () => {
    const pair = sides([row('a'), row('b'), row('c')], []);
    await expect(read({ plan, ...pair, maxSuspects: 2 })).rejects.toMatchObject({
      code: 'TRU_TOO_MANY_SUSPECTS',
    });
    expect((await read({ plan, ...pair, maxSuspects: 3 })).suspects).toHaveLength(3);
  });

  it('takes two empty sides for equal, with nothing read', async () => {
    const result = await read({ plan, ...sides([], []) });
    expect(result).toMatchObject({ complete: true, suspects: [], counts: { source: 0, downstream: 0 } });
  });

  it('stops when told to', async () => {
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(read({ plan, ...sides([row('a')], []), signal })).rejects.toThrow('enough');
  });
});

describe('reading a window', () => {
  it('finds a duplicate whose records stand on different pages of an unordered list', async () => {
    const source = [row('x'), row('a'), row('y'), row('b'), row('x')];
    const downstream = [row('x'), row('a'), row('y'), row('b')];
    const result = await read({ ...sides(source, downstream, { ordered: false, pageSize: 2 }) });
    expect(kindsOf(result)).toEqual({ x: 'duplicate' });
    expect(result.counts).toMatchObject({ source: 5, matched: 3, duplicate: 1 });
  });

  it('merges when both sides list in key order, and says so', async () => {
    const { plan } = await read(sides([], []));
    expect(plan).toEqual({ name: 'merge', why: 'both sides list their window in key order' });
  });

  it('looks up when a side keeps no order, and says which', async () => {
    const pair = { ...sides([], []), downstream: new ArraySide('http gateway', [], { ordered: false }) };
    expect((await read(pair)).plan).toEqual({
      name: 'lookup',
      why: 'http gateway cannot list a window in key order',
    });
  });

  it('falls back to lookups when a side breaks the order it claims', async () => {
    const records = ['9', '10', '1'].map((key) => row(key));
    const byNumber = (a: SideRecord, b: SideRecord) => Number(a.key[0]) - Number(b.key[0]);
    const pair = sides(records, records.slice(0, 2), { sort: byNumber });
    const result = await read(pair);
    expect(result.plan).toMatchObject({ name: 'lookup', why: expect.stringContaining('"10" after "9"') });
    expect(kindsOf(result)).toEqual({ 1: 'missing' });
    await expect(read({ ...pair, plan: 'merge' })).rejects.toBeInstanceOf(OrderError);
  });

  it('counts what it found by key where the downstream lists nothing', async () => {
    const pair = {
      source: new ArraySide('source', [row('a'), row('b')]),
      downstream: new ArraySide('downstream', [row('a'), row('z')], { canScan: false }),
    };
    const result = await read(pair);
    expect(result.counts).toMatchObject({ downstream: 1, missing: 1, extra: 0 });
  });

  it('refuses a source that cannot list, and a merge that cannot be', async () => {
    const blind = new ArraySide('http gateway', [], { canScan: false });
    const sighted = new ArraySide('postgres shop', []);
    await expect(read({ source: blind, downstream: sighted })).rejects.toMatchObject({
      code: 'TRU_NO_WINDOW',
    });
    await expect(read({ source: sighted, downstream: blind, plan: 'merge' })).rejects.toMatchObject({
      code: 'TRU_NO_MERGE',
    });
  });
});

describe('a look at both sides', () => {
  it('gives one verdict for each key', async () => {
    const { source, downstream } = sides([row('a'), row('b')], [row('a'), row('c')]);
    const keys = [['a'], ['b'], ['c'], ['d'], []];
    const verdicts = await lookBoth(
      keys,
      source,
      downstream,
      { rules, digestKey: 'k' },
      new AbortController().signal,
    );
    expect([...verdicts.values()].map((v) => (v.verdict === 'differs' ? v.finding.kind : v.verdict))).toEqual(
      ['match', 'missing', 'extra', 'match', 'undecided'],
    );
  });

  it('says nothing when one side fails', async () => {
    const { source, downstream } = sides([row('a')], []);
    downstream.lookup = () => Promise.reject(new Error('gone'));
    const look = lookBoth(
      [['a']],
      source,
      downstream,
      { rules, digestKey: 'k' },
      new AbortController().signal,
    );
    await expect(look).rejects.toThrow('gone');
  });
});
