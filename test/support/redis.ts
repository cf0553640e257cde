import { inject } from 'vitest';

/**
 * Address of the Redis of this test run. It is shared with other tests and maybe other programs: use names of your
 * own in it, and no FLUSHALL.
 */
export function redisUrl(): string {
  return inject('redisUrl');
}
