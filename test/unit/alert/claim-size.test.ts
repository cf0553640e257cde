import { expect, test } from 'vitest';
import { claimSize } from '../../../src/alert/claim-size.ts';

const load = { waiting: 3, headAttempts: 0, recentSends: 0 };

test('messages are sent one by one while the rate allows them all', () => {
  expect(claimSize(load, 20)).toBe(1);
  expect(claimSize({ ...load, waiting: 20 }, 20)).toBe(1);
});

test('more messages than the minute has room for are taken together', () => {
  expect(claimSize({ ...load, waiting: 21 }, 20)).toBeGreaterThan(21);
  expect(claimSize({ ...load, waiting: 3, recentSends: 18 }, 20)).toBeGreaterThan(3);
});

test('nothing is taken when the minute is full or nothing waits', () => {
  expect(claimSize({ ...load, recentSends: 20 }, 20)).toBe(0);
  expect(claimSize({ ...load, waiting: 0 }, 20)).toBe(0);
});

test('what piled up behind a message that failed five times is told in one', () => {
  expect(claimSize({ ...load, headAttempts: 4 }, 20)).toBe(1);
  expect(claimSize({ ...load, headAttempts: 5 }, 20)).toBeGreaterThan(1);
});
