import { describe, expect, it } from 'vitest';
import { explainEscalation, sentence } from '../../../src/compensate/escalate.ts';
import { ESCALATION_REASONS } from '../../../src/compensate/state.ts';

describe('escalation sentences', () => {
  it('say something of its own for each reason', () => {
    const all = ESCALATION_REASONS.map(sentence);
    expect(new Set(all).size).toBe(ESCALATION_REASONS.length);
    for (const each of all) expect(each).toMatch(/^[A-Z].*[^.]$/);
  });

  it('put the detail between what happened and what to do', () => {
    expect(explainEscalation('exhausted', 'the last with http-500')).toBe(
      'Every allowed attempt failed (the last with http-500). Read the attempts, remove the cause, then replay it.',
    );
    expect(explainEscalation('exhausted', null)).not.toContain('(');
  });
});
