import { describe, expect, it } from 'vitest';
import { type Place, Turns } from '../../../src/jobs/turns.ts';

/** What has resolved by now, without waiting for what has not. */
async function settled(promise: Promise<void>): Promise<boolean> {
  return Promise.race([
    promise.then(() => true),
    new Promise<boolean>((resolve) => setImmediate(() => resolve(false))),
  ]);
}

async function state(places: readonly Place[]): Promise<string> {
  const marks = await Promise.all(
    places.map(async (place) =>
      (await settled(place.turn)) ? 'T' : (await settled(place.near)) ? 'n' : '.',
    ),
  );
  return marks.join('');
}

describe('Turns', () => {
  it('gives turns one at a time, first come first served', async () => {
    const turns = new Turns({ concurrency: 10, nearness: 1 });
    const places = [turns.take(), turns.take(), turns.take()];
    expect(await state(places)).toBe('Tn.');
    places[0]?.leave(true);
    expect(await state(places)).toBe('TTn');
    places[1]?.leave(false);
    expect(await state(places)).toBe('TTT');
  });

  it('gives no turn while as many calls are in flight as may be', async () => {
    const turns = new Turns({ concurrency: 2, nearness: 1 });
    const places = [turns.take(), turns.take(), turns.take(), turns.take()];
    places[0]?.leave(true);
    places[1]?.leave(true);
    expect(await state(places)).toBe('TTn.');
    places[1]?.ended();
    expect(await state(places)).toBe('TTTn');
  });

  it('lets a place leave before its turn without holding up the others', async () => {
    const turns = new Turns({ concurrency: 1, nearness: 2 });
    const places = [turns.take(), turns.take(), turns.take()];
    places[1]?.leave(false);
    places[0]?.leave(false);
    expect(await settled(places[2]?.turn ?? Promise.reject(new Error('gone')))).toBe(true);
  });

  it('goes on when the one whose turn it is leaves without sending', async () => {
    const turns = new Turns({ concurrency: 1, nearness: 1 });
    const places = [turns.take(), turns.take()];
    places[0]?.leave(false);
    expect(await state(places)).toBe('TT');
  });
});
