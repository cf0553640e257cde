import { describe, expect, it } from 'vitest';
import { MINUTE } from '../../../src/compensate/gate/watermark.ts';
import { etaOf, type SendLoad } from '../../../src/jobs/eta.ts';
import { parseInstant } from '../../../src/reconcile/instant.ts';

function at(text: string) {
  const now = parseInstant(text);
  if (now === undefined) throw new Error(text);
  return { now, zone: 'Europe/Berlin', timing: MINUTE };
}

const NIGHT = at('2026-11-30T02:09:30Z');
const load = (values: Partial<SendLoad>): SendLoad => ({
  target: 'gateway',
  sends: 4213,
  ahead: 0,
  limit: 100,
  stopped: null,
  ...values,
});

describe('etaOf', () => {
  it('says when the last send is done, in the local time of the configuration', () => {
    const eta = etaOf([load({})], NIGHT);
    expect(eta.text).toBe('4,213 sends at 100 a minute: done about 03:51 (Europe/Berlin)');
    // 4,213 slots of 605 ms.
    expect(eta.at).toMatch(/^2026-11-30T02:51:5/);
  });

  it('counts what waits for the target already', () => {
    const eta = etaOf([load({ sends: 100, ahead: 1000 })], NIGHT);
    expect(eta.text).toBe(
      '100 sends after 1,000 that wait already at 100 a minute: done about 03:20 (Europe/Berlin)',
    );
  });

  it('goes by the target that takes longest', () => {
    const eta = etaOf([load({ sends: 10 }), load({ target: 'ledger', sends: 60, limit: 10 })], NIGHT);
    expect(eta.text).toBe('70 sends at 10 a minute to ledger: done about 03:15 (Europe/Berlin)');
  });

  it('names the day when it is not soon, and follows the change of the clocks', () => {
    expect(etaOf([load({ sends: 100_000 })], NIGHT).text).toContain('2026-11-30 19:57');
    const spring = etaOf([load({ sends: 100 })], at('2026-03-29T00:59:30Z'));
    expect(spring.text).toContain('done about 03:00 (Europe/Berlin)');
  });

  it('promises nothing while a target is stopped, or without a watermark', () => {
    const stopped = etaOf([load({}), load({ target: 'ledger', limit: 0, stopped: 'it is on hold' })], NIGHT);
    expect(stopped).toEqual({
      at: null,
      text: '8,426 sends: nothing is sent to ledger now: it is on hold',
    });
    expect(etaOf([load({ sends: 1, limit: null })], NIGHT)).toEqual({
      at: null,
      text: '1 send without a watermark: as fast as the target answers',
    });
  });

  it('has nothing to wait for when there is nothing to send', () => {
    expect(etaOf([load({ sends: 0, stopped: 'it is on hold' })], NIGHT)).toEqual({
      at: NIGHT.now,
      text: 'nothing to send',
    });
  });
});
