import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ownPace } from '../../../../src/compensate/gate/own-pace.ts';
import { MINUTE, recoverState, type SlotState, spacing } from '../../../../src/compensate/gate/watermark.ts';

const NOW = 1_790_000_000_000;
const T = spacing(10, MINUTE);
const ask = (slotMs: number, nowMs = NOW) => ({ slotMs, nowMs, limit: 10, timing: MINUTE });

describe('ownPace', () => {
  it('takes a slot that comes at least one spacing after the last', () => {
    expect(ownPace({ lastSlotMs: NOW - T }, ask(NOW))).toEqual({ fits: true, state: { lastSlotMs: NOW } });
  });

  it('refuses one that comes earlier, says when the next is due, and keeps its state', () => {
    const state: SlotState = { lastSlotMs: NOW - T + 5 };
    const reply = ownPace(state, ask(NOW));
    expect(reply).toMatchObject({ fits: false, inMs: 5 });
    expect(reply.state).toBe(state);
  });

  it('takes the slot also when the lock was waited for past it', () => {
    const late = ask(NOW, NOW + 400);
    expect(ownPace({ lastSlotMs: NOW - T }, late)).toEqual({ fits: true, state: { lastSlotMs: NOW } });
  });

  it('begins anew, late enough for what was granted before, when its state is lost', () => {
    for (const lost of [null, { lastSlotMs: NOW + 10 * T }]) {
      const reply = ownPace(lost, ask(NOW));
      expect(reply).toMatchObject({ fits: false, state: recoverState(NOW, MINUTE) });
    }
  });

  it('never lets two slots be closer than the spacing, whatever the target’s gate and the locks do', () => {
    const moments = fc.array(fc.record({ step: fc.nat(9_000), lock: fc.nat(3_000) }), { maxLength: 60 });
    fc.assert(
      fc.property(moments, (steps) => {
        let state: SlotState | null = { lastSlotMs: NOW };
        let slotMs = NOW;
        const taken: number[] = [NOW];
        for (const { step, lock } of steps) {
          slotMs += step;
          const reply = ownPace(state, ask(slotMs, slotMs + lock - MINUTE.horizonMs));
          state = reply.state;
          if (reply.fits) taken.push(slotMs);
        }
        for (const [index, at] of taken.slice(1).entries())
          expect(at - (taken[index] ?? 0)).toBeGreaterThanOrEqual(T);
      }),
    );
  });
});
