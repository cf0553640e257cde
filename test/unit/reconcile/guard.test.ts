import { describe, expect, it } from 'vitest';
import { type FoundByKind, guard, stopsReleased } from '../../../src/reconcile/guard.ts';
import type { FieldDifference, Value } from '../../../src/reconcile/record.ts';

const policy = { maxDiffs: 1000, maxRatio: 0.2, minRecords: 100 };
const NONE: FoundByKind = { missing: 0, extra: 0, mismatched: 0, duplicate: 0 };
const judge = (
  counts: { source: number; downstream: number },
  found: Partial<FoundByKind>,
  sample: readonly { fields: FieldDifference[] }[] = [],
) => guard(counts, { ...NONE, ...found }, sample, policy);
/** So many mismatched findings with these fields, judged on two sides of 1000 records. */
const judgeFields = (count: number, fields: (i: number) => FieldDifference[]) =>
  judge(
    { source: 1000, downstream: 1000 },
    { mismatched: count },
    Array.from({ length: count }, (_, i) => ({ fields: fields(i) })),
  );
const field = (source: Value, downstream: Value): FieldDifference[] => [
  { field: 'f', source, downstream, rule: 'r' },
];
const decimal = (text: string): Value => ({ type: 'decimal', text });
const instant = (hour: number, i: number): Value => ({
  type: 'instant',
  text: `2026-11-30T${String(hour).padStart(2, '0')}:00:${String(i).padStart(2, '0')}.000001Z`,
});

describe('the guard', () => {
  it('lets ordinary diffs pass', () => {
    expect(judge({ source: 1000, downstream: 1000 }, { mismatched: 30 })).toEqual({
      ok: true,
    });
    expect(judge({ source: 0, downstream: 0 }, {})).toEqual({ ok: true });
  });

  it('stops more diffs than allowed', () => {
    expect(judge({ source: 100_000, downstream: 100_000 }, { missing: 1001 })).toMatchObject({
      pattern: 'too many diffs',
      facts: { diffs: 1001, maxDiffs: 1000 },
    });
  });

  it('stops too large a share, from minRecords on', () => {
    expect(judge({ source: 100, downstream: 100 }, { mismatched: 21 })).toMatchObject({
      pattern: 'too large a share',
    });
    expect(judge({ source: 99, downstream: 99 }, { mismatched: 21 })).toEqual({ ok: true });
  });

  it('names a side that lost its records', () => {
    expect(judge({ source: 200, downstream: 0 }, { missing: 200 })).toMatchObject({
      pattern: 'downstream is empty',
    });
    expect(judge({ source: 200, downstream: 50 }, { missing: 150 })).toMatchObject({
      pattern: 'downstream has shrunk',
    });
    expect(judge({ source: 0, downstream: 200 }, { extra: 200 })).toMatchObject({
      pattern: 'source is empty',
    });
  });

  it('does not take other windows for a lost side: records found by key are not missing', () => {
    expect(judge({ source: 200, downstream: 0 }, { mismatched: 3 })).toEqual({ ok: true });
  });

  it('names a constant time offset', () => {
    const shifted = judgeFields(12, (i) => field(instant(10, i), instant(11, i)));
    expect(shifted).toMatchObject({
      pattern: 'constant time offset',
      facts: { field: 'f', amount: '60 minutes', records: 12, of: 12 },
    });
  });

  it('does not call a delay of minutes an offset', () => {
    const late = judgeFields(12, (i) => field(instant(10, i), instant(10, i + 1)));
    expect(late).toEqual({ ok: true });
  });

  it('names a constant factor over most rows', () => {
    const minor = judgeFields(20, (i) =>
      field(decimal(`${i + 1}.25`), decimal(i < 17 ? `${(i + 1) * 100 + 25}` : '7')),
    );
    expect(minor).toMatchObject({
      pattern: 'constant factor',
      facts: { amount: '100', records: 17, of: 20 },
    });
  });

  it('names a constant offset', () => {
    const fee = judgeFields(20, (i) => field(decimal(`${i}.1`), decimal(`${i}.05`)));
    expect(fee).toMatchObject({
      pattern: 'constant offset',
      facts: { amount: '-5e-2' },
    });
  });

  it('does not take two numbered states for an offset', () => {
    const states = judgeFields(50, () => field(decimal('1'), decimal('2')));
    expect(states).toEqual({ ok: true });
  });

  it('stops a released run again only for a shift that it did not show before', () => {
    expect(stopsReleased('too many diffs', 'too many diffs')).toBe(false);
    expect(stopsReleased('too large a share', 'downstream is empty')).toBe(false);
    expect(stopsReleased('constant factor', 'constant factor')).toBe(false);
    expect(stopsReleased('constant factor', 'too many diffs')).toBe(true);
  });
});
