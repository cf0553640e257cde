import { describe, expect, it } from 'vitest';
import { diffFilters } from '../../../src/cli/diff-filters.ts';

describe('--where', () => {
  it('left out means what still needs something', () => {
    expect(diffFilters(undefined)).toEqual({ states: ['open', 'failed'] });
  });

  it('reads conditions that all must hold', () => {
    expect(diffFilters('reconciliation=payments, kind=missing ,state=open,reason=refused,run=12')).toEqual({
      reconciliation: 'payments',
      kinds: ['missing'],
      states: ['open'],
      escalation: 'refused',
      runId: '12',
    });
  });

  it.each([
    ['key=A1', ['A1']],
    ['key=A1 / 2', ['A1', '2']],
    ['key=["A,1","2/3"]', ['A,1', '2/3']],
  ])('reads %s', (where, key) => {
    expect(diffFilters(`kind=missing,${where},state=open`).key).toEqual(key);
  });

  it.each([
    ['', /is no condition/],
    [',', /is no condition/],
    ['kind', /"kind" is no condition/],
    ['kind=', /is no condition/],
    ['=missing', /is no condition/],
    ['kind=mising', /did you mean "missing"/],
    ['state=opn', /did you mean "open"/],
    ['reason=because', /known words: refused/],
    ['colour=red', /no "colour"/],
    ['kind=extra,kind=missing', /"kind" is there twice/],
    ['key=["A1"', /no list of texts/],
    ['key=[1]', /no list of texts/],
    ['run=x', /"x" is no id/],
  ])('refuses %j', (where, words) => {
    try {
      diffFilters(where);
    } catch (error) {
      const { exit, message, hint } = error as { exit: number; message: string; hint: string };
      expect(exit).toBe(2);
      expect(`${message}; ${hint}`).toMatch(words);
      return;
    }
    throw new Error('was not refused');
  });
});
