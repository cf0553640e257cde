import { describe, expect, it } from 'vitest';
import { type Place, Turns } from '../../../src/jobs/turns.ts';

/** What has resolved by now, without waiting for what has not. */
async function settled(promise: Promise<void>): Promise<boolean> {
  return Promise.race([
    promise.then(() => true),
    new Promise<boolean>((resolve) => setImmediate(() => resolve(false))),
  ]);
}

/** A place that asks for its turn at once, or later with `ask`. */
function placeIn(turns: Turns, asks = true) {
  const place: Place = turns.take();
  let turn = asks ? place.turn() : new Promise<void>(() => {});
  return {
    ...place,
    ask: () => {
      turn = place.turn();
    },
    mark: async () => ((await settled(turn)) ? 'T' : (await settled(place.near)) ? 'n' : '.'),
  };
}

async function state(places: readonly ReturnType<typeof placeIn>[]): Promise<string> {
  return (await Promise.all(places.map((place) => place.mark()))).join('');
}

describe('Turns', () => {
  it('gives turns one at a time, first come first served', async () => {
    const turns = new Turns({ concurrency: 10, nearness: 1 });
    const places = [placeIn(turns), placeIn(turns), placeIn(turns)];
    expect(await state(places)).toBe('Tn.');
    places[0]?.leave(true);
    expect(await state(places)).toBe('TTn');
    places[1]?.leave(false);
    expect(await state(places)).toBe('TTT');
  });

  it('gives no turn while as many calls are in flight as may be', async () => {
    const turns = new Turns({ concurrency: 2, nearness: 1 });
    const places = [placeIn(turns), placeIn(turns), placeIn(turns), placeIn(turns)];
    places[0]?.leave(true);
    places[1]?.leave(true);
    expect(await state(places)).toBe('TTn.');
    places[1]?.ended();
    expect(await state(places)).toBe('TTTn');
  });

  it('lets a place leave before its turn without holding up the others', async () => {
    const turns = new Turns({ concurrency: 1, nearness: 2 });
    const places = [placeIn(turns), placeIn(turns), placeIn(turns)];
    places[1]?.leave(false);
    places[0]?.leave(false);
    expect(await places[2]?.mark()).toBe('T');
  });

  it('passes by a place that is not ready, which is first again once it is', async () => {
    const turns = new Turns({ concurrency: 10, nearness: 3 });
    const slow = placeIn(turns, false);
    const places = [slow, placeIn(turns), placeIn(turns)];
    expect(await state(places)).toBe('nTn');
    slow.ask();
    expect(await state(places)).toBe('nTn');
    places[1]?.leave(true);
    expect(await state(places)).toBe('TTn');
  });

  it('lets the next be near in the stead of one whose look takes long', async () => {
    const turns = new Turns({ concurrency: 10, nearness: 1 });
    const slow = placeIn(turns, false);
    const next = turns.take();
    expect(await settled(next.near)).toBe(false);
    slow.letPass();
    expect(await settled(next.near)).toBe(true);
    slow.ask();
    expect(await slow.mark()).toBe('T');
  });

  it('gives the turn of one that steps back to the next, and keeps its place in line', async () => {
    const turns = new Turns({ concurrency: 10, nearness: 3 });
    const places = [placeIn(turns), placeIn(turns), placeIn(turns)];
    places[0]?.stepBack();
    expect(await places[1]?.mark()).toBe('T');
    places[0]?.ask();
    expect(await state(places)).toBe('nTn');
    places[1]?.leave(true);
    expect(await state(places)).toBe('TTn');
  });
});
