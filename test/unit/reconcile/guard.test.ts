import { describe, expect, it } from 'vitest';
import { guard } from '../../../src/reconcile/guard.ts';
import type { DiffKind, FieldDifference, Finding, Value } from '../../../src/reconcile/record.ts';

const policy = { maxDiffs: 1000, maxRatio: 0.2, minRecords: 100 };
const findings = (
  kind: DiffKind,
  count: number,
  fields: (i: number) => FieldDifference[] = () => [],
): Finding[] =>
  Array.from({ length: count }, (_, i) => ({
    key: [String(i)],
    kind,
    fields: fields(i),
    source: null,
    downstream: null,
    sourceCount: 1,
    downstreamCount: 1,
    sourceDigest: 's',
    downstreamDigest: 'd',
  }));
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
    expect(guard({ source: 1000, downstream: 1000 }, findings('mismatched', 30), policy)).toEqual({
      ok: true,
    });
    expect(guard({ source: 0, downstream: 0 }, [], policy)).toEqual({ ok: true });
  });

  it('stops more diffs than allowed', () => {
    expect(guard({ source: 100_000, downstream: 100_000 }, findings('missing', 1001), policy)).toMatchObject({
      pattern: 'too many diffs',
      facts: { diffs: 1001, maxDiffs: 1000 },
    });
  });

  it('stops too large a share, from minRecords on', () => {
    expect(guard({ source: 100, downstream: 100 }, findings('mismatched', 21), policy)).toMatchObject({
      pattern: 'too large a share',
    });
    expect(guard({ source: 99, downstream: 99 }, findings('mismatched', 21), policy)).toEqual({ ok: true });
  });

  it('names a side that lost its records', () => {
    expect(guard({ source: 200, downstream: 0 }, findings('missing', 200), policy)).toMatchObject({
      pattern: 'downstream is empty',
    });
    expect(guard({ source: 200, downstream: 50 }, findings('missing', 150), policy)).toMatchObject({
      pattern: 'downstream has shrunk',
    });
    expect(guard({ source: 0, downstream: 200 }, findings('extra', 200), policy)).toMatchObject({
      pattern: 'source is empty',
    });
  });

  it('does not take other windows for a lost side: records found by key are not missing', () => {
    expect(guard({ source: 200, downstream: 0 }, findings('mismatched', 3), policy)).toEqual({ ok: true });
  });

  it('names a constant time offset', () => {
    const shifted = findings('mismatched', 12, (i) => field(instant(10, i), instant(11, i)));
    expect(guard({ source: 1000, downstream: 1000 }, shifted, policy)).toMatchObject({
      pattern: 'constant time offset',
      facts: { field: 'f', amount: '60 minutes', records: 12, of: 12 },
    });
  });

  it('does not call a delay of minutes an offset', () => {
    const late = findings('mismatched', 12, (i) => field(instant(10, i), instant(10, i + 1)));
    expect(guard({ source: 1000, downstream: 1000 }, late, policy)).toEqual({ ok: true });
  });

  it('names a constant factor over most rows', () => {
    const minor = findings('mismatched', 20, (i) =>
      field(decimal(`${i + 1}.25`), decimal(i < 17 ? `${(i + 1) * 100 + 25}` : '7')),
    );
    expect(guard({ source: 1000, downstream: 1000 }, minor, policy)).toMatchObject({
      pattern: 'constant factor',
      facts: { amount: '100', records: 17, of: 20 },
    });
  });

  it('names a constant offset', () => {
    const fee = findings('mismatched', 20, (i) => field(decimal(`${i}.1`), decimal(`${i}.05`)));
    expect(guard({ source: 1000, downstream: 1000 }, fee, policy)).toMatchObject({
      pattern: 'constant offset',
      facts: { amount: '-5e-2' },
    });
  });

  it('does not take two numbered states for an offset', () => {
    const states = findings('mismatched', 50, () => field(decimal('1'), decimal('2')));
    expect(guard({ source: 1000, downstream: 1000 }, states, policy)).toEqual({ ok: true });
  });
});
