import { describe, expect, it } from 'vitest';
import { mayRepeat, type SettleInput, settle } from '../../../src/compensate/settle.ts';

const plain = { dedupes: false, keyRetentionMs: 86_400_000, appliesWithinMs: null };
const at = (part: Partial<SettleInput>) =>
  settle({
    state: 'applied',
    look: 'differs',
    undecidedForMs: 0,
    giveUpAfterMs: 86_400_000,
    sinceSendMs: 1000,
    target: plain,
    unknownForMs: part.sinceSendMs ?? 1000,
    readLagMs: 0,
    verifyWithinMs: 30_000,
    verifyEveryMs: 1000,
    onNotTaken: 'escalate',
    attempts: 1,
    maxAttempts: 3,
    ...part,
  });

describe('settle', () => {
  it('is verified by a look that finds the sides equal, however late', () => {
    for (const state of ['applied', 'unknown'] as const)
      expect(at({ state, look: 'equal', sinceSendMs: 1e9, attempts: 9 })).toEqual({ event: 'seen' });
  });

  it('calls a person when looks failed for giveUpAfter, and not for the time before the first of them', () => {
    for (const state of ['applied', 'unknown'] as const) {
      const failed = (undecidedForMs: number) =>
        at({ state, look: 'failed', sinceSendMs: 1e9, undecidedForMs });
      expect(failed(86_399_999)).toMatchObject({ event: 'look-later' });
      expect(failed(86_400_000)).toEqual({ event: 'escalate', reason: 'unreadable' });
      expect(at({ state, look: 'equal', undecidedForMs: 86_400_000 })).toEqual({ event: 'seen' });
    }
  });

  it('learns nothing from a look that failed, and calls nobody for one', () => {
    for (const state of ['applied', 'unknown'] as const)
      expect(at({ state, look: 'failed', sinceSendMs: 1e9, attempts: 9 })).toEqual({
        event: 'look-later',
        afterMs: 1000,
      });
  });

  it('looks until verify.within, then the change was not taken', () => {
    expect(at({ sinceSendMs: 29_500 })).toEqual({ event: 'look-later', afterMs: 500 });
    expect(at({ sinceSendMs: 30_000 })).toEqual({ event: 'escalate', reason: 'not-taken' });
    expect(at({ sinceSendMs: 30_000, onNotTaken: 'resend' })).toEqual({ event: 'replaced' });
  });
});

describe('settle of an unknown outcome (rule 6.10)', () => {
  const unknown = (part: Partial<SettleInput>) => at({ state: 'unknown', ...part });

  it('never sends again when nothing allows it', () => {
    expect(unknown({ sinceSendMs: 29_999 })).toMatchObject({ event: 'look-later' });
    expect(unknown({ sinceSendMs: 30_000 })).toEqual({ event: 'escalate', reason: 'unresolved' });
  });

  it('sends again to a target that dedupes, with pauses that double', () => {
    const target = { ...plain, dedupes: true };
    expect(unknown({ target, sinceSendMs: 999 })).toEqual({ event: 'look-later', afterMs: 1 });
    expect(unknown({ target, sinceSendMs: 1000 })).toEqual({ event: 'resend' });
    expect(unknown({ target, attempts: 2, sinceSendMs: 1999 })).toMatchObject({ event: 'look-later' });
    expect(unknown({ target, attempts: 2, sinceSendMs: 2000 })).toEqual({ event: 'resend' });
  });

  it('does not, once the target may have forgotten the key', () => {
    const target = { ...plain, dedupes: true, keyRetentionMs: 60_000 };
    expect(unknown({ target, sinceSendMs: 59_999 })).toEqual({ event: 'resend' });
    expect(unknown({ target, sinceSendMs: 60_000 })).toEqual({ event: 'escalate', reason: 'unresolved' });
  });

  it('sends again when a look later than appliesWithin and the read lag still differs', () => {
    const target = { ...plain, appliesWithinMs: 10_000 };
    expect(unknown({ target, readLagMs: 500, sinceSendMs: 10_500 })).toMatchObject({ event: 'look-later' });
    expect(unknown({ target, readLagMs: 500, sinceSendMs: 10_501 })).toEqual({ event: 'resend' });
  });

  it('waits for appliesWithin even when it is longer than verify.within', () => {
    const target = { ...plain, appliesWithinMs: 60_000 };
    expect(unknown({ target, attempts: 3, sinceSendMs: 60_000 })).toMatchObject({ event: 'look-later' });
    expect(unknown({ target, attempts: 3, sinceSendMs: 60_001 })).toEqual({
      event: 'escalate',
      reason: 'unresolved',
    });
  });

  it('respects the attempts, and still looks until verify.within before it calls a person', () => {
    const target = { ...plain, dedupes: true };
    expect(unknown({ target, attempts: 3, sinceSendMs: 20_000 })).toMatchObject({ event: 'look-later' });
    expect(unknown({ target, attempts: 3, sinceSendMs: 30_000 })).toEqual({
      event: 'escalate',
      reason: 'unresolved',
    });
  });

  it('can be asked again when the repeat really starts', () => {
    const target = { ...plain, dedupes: true };
    expect(mayRepeat({ sendMs: 1000, unknownMs: 1000 }, target, 0)).toBe(true);
    expect(mayRepeat({ sendMs: 90_000_000, unknownMs: 90_000_000 }, target, 0)).toBe(false);
  });

  it('counts the memory of the key from the oldest send that is not settled, not from the latest', () => {
    expect(mayRepeat({ sendMs: 1000, unknownMs: 90_000_000 }, { ...plain, dedupes: true }, 0)).toBe(false);
  });
});
