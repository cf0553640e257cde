import { describe, expect, it } from 'vitest';
import { type IdentityInput, nextRevision, type PastCompensation } from '../../../src/compensate/identity.ts';

const HOUR = 3_600_000;
const past = (part: Partial<PastCompensation>): PastCompensation => ({
  revision: 0,
  state: 'verified',
  escalation: null,
  fingerprint: 'same',
  lastUnknown: false,
  endedMsAgo: HOUR,
  ...part,
});
const next = (history: PastCompensation[], rest: Partial<Omit<IdentityInput, 'history'>> = {}) =>
  nextRevision({ history, fingerprint: 'same', relapseMs: 24 * HOUR, byPerson: false, ...rest });
const escalated = (escalation: string, part: Partial<PastCompensation> = {}) =>
  past({ state: 'escalated', escalation, ...part });

describe('nextRevision', () => {
  it('begins at 0', () => {
    expect(next([])).toEqual({ kind: 'next', revision: 0 });
  });

  it('waits while one is open, also an older one', () => {
    for (const state of ['planned', 'sending', 'unknown', 'applied'] as const)
      expect(next([past({ state, endedMsAgo: null })], { fingerprint: 'other' })).toEqual({ kind: 'open' });
    expect(next([past({ state: 'unknown', endedMsAgo: null }), past({ revision: 1 })])).toEqual({
      kind: 'open',
    });
  });

  it('is kept after a discard and after healed, and rises on a changed payload (rule 6.2)', () => {
    for (const state of ['cancelled', 'healed'] as const) {
      expect(next([past({ state, revision: 2 })])).toEqual({ kind: 'next', revision: 2 });
      expect(next([past({ state, revision: 2 })], { fingerprint: 'other' })).toEqual({
        kind: 'next',
        revision: 3,
      });
    }
    expect(next([past({ state: 'superseded', fingerprint: 'old' })])).toEqual({ kind: 'next', revision: 1 });
  });

  it('is flapping when the same repair is wanted again soon after it took (rule 6.4)', () => {
    expect(next([past({})])).toMatchObject({ kind: 'flapping', revision: 1 });
    expect(next([escalated('not-taken')])).toMatchObject({ kind: 'flapping', revision: 1 });
    expect(next([past({ state: 'healed', lastUnknown: true })])).toMatchObject({
      kind: 'flapping',
      revision: 1,
    });
  });

  it('is a new revision when the relapse comes later, or a person asks', () => {
    expect(next([past({ endedMsAgo: 24 * HOUR + 1 })])).toEqual({ kind: 'next', revision: 1 });
    expect(next([past({})], { byPerson: true })).toEqual({ kind: 'next', revision: 1 });
  });

  it('repairs a record that changed again after its repair, but not for the fourth time in a day', () => {
    const history = [0, 1, 2].map((revision) => past({ revision, fingerprint: `f${revision}` }));
    expect(next(history.slice(0, 2))).toEqual({ kind: 'next', revision: 2 });
    expect(next(history)).toMatchObject({ kind: 'flapping', revision: 3 });
  });

  it('keeps the revision of an unknown outcome, and calls another payload a conflict (rule 6.3)', () => {
    const unknown = escalated('unresolved', { lastUnknown: true });
    expect(next([unknown])).toEqual({ kind: 'open' });
    expect(next([unknown], { byPerson: true })).toEqual({ kind: 'next', revision: 0 });
    for (const byPerson of [false, true])
      expect(next([unknown], { fingerprint: 'other', byPerson })).toMatchObject({
        kind: 'conflict',
        revision: 1,
      });
    expect(next([past({ state: 'cancelled', lastUnknown: true })])).toEqual({ kind: 'next', revision: 0 });
  });

  it('leaves what is in front of a person there, until the person or the payload moves', () => {
    for (const reason of ['refused', 'exhausted', 'gave-up', 'flapping', 'conflict']) {
      expect(next([escalated(reason)]), reason).toEqual({ kind: 'open' });
      expect(next([escalated(reason)], { fingerprint: 'other' }), reason).toEqual({
        kind: 'next',
        revision: 1,
      });
    }
    expect(next([escalated('unplannable')])).toEqual({ kind: 'next', revision: 0 });
  });

  it('rises on a person’s replay after a definite refusal and not after spent retries', () => {
    expect(next([escalated('refused')], { byPerson: true })).toEqual({ kind: 'next', revision: 1 });
    expect(next([escalated('exhausted')], { byPerson: true })).toEqual({ kind: 'next', revision: 0 });
    expect(next([escalated('gave-up')], { byPerson: true })).toEqual({ kind: 'next', revision: 0 });
  });

  it('looks at the highest revision, and of equal ones at the last to end', () => {
    const history = [escalated('refused', { endedMsAgo: 5 }), past({ state: 'cancelled', endedMsAgo: 1 })];
    expect(next(history)).toEqual({ kind: 'next', revision: 0 });
    expect(next([past({ state: 'cancelled', revision: 3 }), escalated('refused', { revision: 1 })])).toEqual({
      kind: 'next',
      revision: 3,
    });
  });
});
