import { describe, expect, it } from 'vitest';
import { Waiting } from '../../../src/cli/waiting.ts';
import type { TargetLoad } from '../../../src/jobs/send-loads.ts';

const MINUTE = 60_000;
const load = (values: Partial<TargetLoad> = {}): TargetLoad => ({
  target: 'gateway',
  sends: 5,
  ahead: 0,
  limit: 100,
  stopped: null,
  needsPerson: false,
  ...values,
});
const held = load({ limit: 0, stopped: 'it is on hold', needsPerson: true });
const open = load({ limit: 0, stopped: 'its breaker is open' });

function waiting() {
  const clock = { ms: 0 };
  return { clock, waiting: new Waiting(30 * MINUTE, () => clock.ms) };
}
const seen = (loads: readonly TargetLoad[], movement = 'still', reading = false) => ({
  loads,
  movement,
  reading,
});

describe('waiting for repairs', () => {
  it('says each reason once, and again when it is back', () => {
    const { waiting: it } = waiting();
    expect(it.look(seen([load()])).say).toBeNull();
    expect(it.look(seen([held])).say).toBe(
      'waiting (at most 30m without a move): 5 sends to gateway: it is on hold',
    );
    // Fewer to send is the same reason.
    expect(it.look(seen([{ ...held, sends: 4 }])).say).toBeNull();
    expect(it.look(seen([open])).say).toContain('breaker');
    expect(it.look(seen([load()])).say).toBeNull();
    expect(it.look(seen([open])).say).toContain('breaker');
  });

  it('gives up when nothing moved for so long, and says whether a person is needed', () => {
    for (const [stopped, needsPerson] of [
      [held, true],
      [open, false],
    ] as const) {
      const { clock, waiting: it } = waiting();
      expect(it.look(seen([stopped])).gaveUp).toBeNull();
      clock.ms = 30 * MINUTE - 1;
      expect(it.look(seen([stopped])).gaveUp).toBeNull();
      clock.ms = 30 * MINUTE;
      expect(it.look(seen([stopped])).gaveUp).toEqual({
        waitingFor: [`5 sends to gateway: ${stopped.stopped}`],
        needsPerson,
      });
    }
  });

  it('goes on for hours while something moves', () => {
    const { clock, waiting: it } = waiting();
    for (let round = 0; round < 100; round += 1) {
      clock.ms += 29 * MINUTE;
      expect(it.look(seen([load()], `moved ${round}`)).gaveUp).toBeNull();
    }
  });

  it('does not count the time in which a run reads and rechecks, or in which sends are settled', () => {
    const { clock, waiting: it } = waiting();
    it.look(seen([held]));
    clock.ms += 60 * MINUTE;
    expect(it.look(seen([held], 'still', true)).gaveUp).toBeNull();
    clock.ms += 60 * MINUTE;
    expect(it.look(seen([{ ...held, sends: 0 }])).gaveUp).toBeNull();
    clock.ms += 29 * MINUTE;
    expect(it.look(seen([held])).gaveUp).toBeNull();
    clock.ms += MINUTE;
    expect(it.look(seen([held])).gaveUp).not.toBeNull();
  });

  it('ends also when no target says why', () => {
    const { clock, waiting: it } = waiting();
    it.look(seen([load()]));
    clock.ms = 31 * MINUTE;
    expect(it.look(seen([load()])).gaveUp).toEqual({
      waitingFor: ['nothing moves, and no target says why'],
      needsPerson: false,
    });
  });
});
