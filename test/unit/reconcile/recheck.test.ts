import { describe, expect, it } from 'vitest';
import { recheck, type Witnessed } from '../../../src/reconcile/recheck.ts';
import type { Finding } from '../../../src/reconcile/record.ts';

const finding = (sourceDigest: string | null, downstreamDigest: string | null = 'd'): Finding => ({
  key: ['a'],
  kind: 'mismatched',
  fields: [],
  source: null,
  downstream: null,
  sourceCount: 1,
  downstreamCount: 1,
  sourceDigest,
  downstreamDigest,
});
const witnessed = (looks = 1, sourceDigest: string | null = 's1'): Witnessed => ({
  kind: 'mismatched',
  sourceDigest,
  downstreamDigest: 'd',
  looks,
});
const policy = { delayMs: 30_000, looks: 4 };
const differs = (digest: string | null) => ({ verdict: 'differs', finding: finding(digest, 'd2') }) as const;

describe('the recheck of a suspect', () => {
  it('heals it when the sides agree', () => {
    expect(recheck(witnessed(), { verdict: 'match', sourceDigest: 's1' }, policy)).toEqual({
      next: 'healed',
    });
  });

  it('makes it a diff when it still differs and the source stood still, though the downstream moved', () => {
    expect(recheck(witnessed(), differs('s1'), policy)).toEqual({
      next: 'diff',
      finding: finding('s1', 'd2'),
    });
  });

  it('makes it a diff when the source still has no record', () => {
    expect(recheck(witnessed(1, null), differs(null), policy)).toMatchObject({ next: 'diff' });
  });

  it('looks again, later each time, when the source moved', () => {
    expect(recheck(witnessed(1), differs('s2'), policy)).toEqual({
      next: 'look-again',
      afterMs: 60_000,
      looks: 2,
      sourceDigest: 's2',
      downstreamDigest: 'd2',
    });
    expect(recheck(witnessed(2), differs('s2'), policy)).toMatchObject({ afterMs: 120_000, looks: 3 });
    expect(recheck(witnessed(90), differs('s2'), { ...policy, looks: 99 })).toMatchObject({
      afterMs: 480_000,
    });
  });

  it('gives up as undecided when the source never stands still', () => {
    expect(recheck(witnessed(3), differs('s2'), policy)).toMatchObject({
      next: 'undecided',
      reason: 'the source moved at each of 4 looks',
      finding: { sourceDigest: 's2' },
    });
  });

  it('passes on what cannot be judged', () => {
    const verdict = {
      verdict: 'undecided',
      key: ['a'],
      reason: 'amount: unreadable',
      time: null,
      finding: null,
    } as const;
    expect(recheck(witnessed(), verdict, policy)).toEqual({
      next: 'undecided',
      reason: 'amount: unreadable',
      finding: null,
    });
  });
});
