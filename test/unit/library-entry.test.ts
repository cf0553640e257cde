import { describe, expect, expectTypeOf, it } from 'vitest';
import { isDefinedAction } from '../../src/compensate/define-action.ts';
import * as library from '../../src/index.ts';

describe('the library entry', () => {
  it('offers what a module action is written with, and the retry parts', () => {
    expect(Object.keys(library).sort()).toEqual([
      'FatalError',
      'RetryableError',
      'SideError',
      'UnknownOutcomeError',
      'classifyAnswer',
      'classifyError',
      'defineAction',
      'errorRecord',
      'nextTry',
      'parseRetryAfter',
      'stopReason',
      'waitBefore',
    ]);
  });

  it('offers retry parts that work without a running trueup', () => {
    const policy = { kind: 'exponential', base: 500, factor: 2, step: 0, cap: 8000, jitter: 0 } as const;
    expect([1, 2, 3].map((attempt) => library.waitBefore(attempt, policy, () => 0.5))).toEqual([
      500, 1000, 2000,
    ]);
    expect(library.parseRetryAfter('120', 0, 60_000)).toBe(60_000);
    expect(library.classifyError(new library.RetryableError('busy'), { sent: true }).class).toBe('retryable');
  });
});

describe('defineAction', () => {
  const run = async () => ({ outcome: 'done' }) as const;

  it('takes a function or an object with a name, and is recognised', () => {
    const named = library.defineAction({ name: 'create-order', run });
    expect(named).toMatchObject({ name: 'create-order', run });
    expect(library.defineAction(run)).toMatchObject({ name: 'run', run });
    expect(isDefinedAction(named)).toBe(true);
  });

  it('is recognised across two copies of the package, and a bare function is not', () => {
    const foreign = { name: 'other', run, [Symbol.for('trueup.action')]: true };
    expect(isDefinedAction(foreign)).toBe(true);
    for (const other of [run, { name: 'x', run }, null, undefined, 'text'])
      expect(isDefinedAction(other)).toBe(false);
  });

  it('refuses what is no function, with what to give instead', () => {
    const nothing = { name: 'x' } as unknown as Parameters<typeof library.defineAction>[0];
    expect(() => library.defineAction(nothing)).toThrow(/takes a function, or \{ name, run \}/);
    expect(() => library.defineAction(undefined as never)).toThrow(TypeError);
  });

  it('types the input, and lets only "done" and "pending" through', () => {
    library.defineAction<{ no: string }>(async ({ input, signal }) => {
      expectTypeOf(input.no).toEqualTypeOf<string>();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      return { outcome: 'pending', answer: input };
    });
    // @ts-expect-error: an action that says nothing about its outcome is an error already when it is written.
    library.defineAction(async () => undefined);
  });
});
