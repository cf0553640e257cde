import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FatalError, RetryableError, UnknownOutcomeError } from '../../../../src/compensate/errors.ts';
import { classifyAnswer, classifyError } from '../../../../src/compensate/retry/classify.ts';
import type { Answers } from '../../../../src/config/schema.ts';

interface Corpus {
  readonly errors: readonly {
    readonly name: string;
    readonly error: Record<string, unknown>;
    readonly sent: boolean;
    readonly class: string;
    readonly code: string;
  }[];
  readonly statuses: readonly {
    readonly status: number;
    readonly dedupes?: boolean;
    readonly class: string;
  }[];
}

const corpus: Corpus = JSON.parse(
  readFileSync(new URL('../../../cases/classification.json', import.meta.url), 'utf8'),
);

function errorFrom(spec: Record<string, unknown>): Error {
  const error = new Error(String(spec['message'] ?? 'failed'));
  for (const [name, value] of Object.entries(spec)) {
    const made =
      name === 'cause'
        ? errorFrom(value as Record<string, unknown>)
        : name === 'errors'
          ? (value as Record<string, unknown>[]).map(errorFrom)
          : value;
    Object.defineProperty(error, name, { value: made, configurable: true });
  }
  return error;
}

const NONE: Answers = { pending: [], retryable: [], unknown: [], fatal: [] };
const answer = (status: number, body = '') => ({ status, headers: {}, body });

describe('classifyError', () => {
  it('has a corpus of at least 40 errors', () => {
    expect(corpus.errors.length).toBeGreaterThanOrEqual(40);
  });

  for (const each of corpus.errors) {
    it(`knows: ${each.name}`, () => {
      const found = classifyError(errorFrom(each.error), { sent: each.sent });
      expect(found).toEqual({ class: each.class, code: each.code, unclassified: false });
    });
  }

  it('retries what it does not know, and says so', () => {
    const found = classifyError(new TypeError('x is not a function'), { sent: true });
    expect(found).toEqual({ class: 'retryable', code: 'TypeError', unclassified: true });
  });

  it('reads the words of the three error classes, through a wrapper', () => {
    const wrap = (cause: unknown) => new Error('wrapped', { cause });
    expect(classifyError(wrap(new RetryableError('r')), { sent: true }).class).toBe('retryable');
    expect(classifyError(wrap(new FatalError('f')), { sent: true }).class).toBe('fatal');
    expect(classifyError(wrap(new UnknownOutcomeError('u')), { sent: false }).class).toBe('unknown');
  });

  it('finds the word at a depth of 10 and not beyond', () => {
    const deep = (depth: number): Error =>
      depth === 0 ? new FatalError('inner') : new Error('outer', { cause: deep(depth - 1) });
    expect(classifyError(deep(10), { sent: true }).class).toBe('fatal');
    expect(classifyError(deep(11), { sent: true }).unclassified).toBe(true);
  });

  it('takes an SDK’s 500 for retryable only where the target dedupes', () => {
    const error = Object.assign(new Error('boom'), { status: 500 });
    expect(classifyError(error, { sent: true, dedupes: true }).class).toBe('retryable');
    expect(classifyError(error, { sent: true }).class).toBe('unknown');
  });

  it('survives everything that can be thrown', () => {
    const hostile = Object.defineProperty({}, 'code', {
      get() {
        throw new Error('no');
      },
    });
    const cyclic = new Error('cycle');
    cyclic.cause = cyclic;
    for (const thrown of [undefined, null, 'text', 42, Object.create(null), hostile, cyclic, Symbol('s')])
      expect(classifyError(thrown, { sent: true }).unclassified).toBe(true);
  });
});

describe('classifyAnswer without matchers', () => {
  for (const each of corpus.statuses) {
    it(`puts ${each.status}${each.dedupes ? ' of a target that dedupes' : ''} under ${each.class}`, () => {
      const found = classifyAnswer(answer(each.status), NONE, { dedupes: each.dedupes ?? false });
      expect(found).toEqual({ class: each.class, code: `http-${each.status}`, unclassified: false });
    });
  }
});

describe('classifyAnswer with matchers', () => {
  const answers: Answers = {
    success: [{ pointer: '/code', in: ['SUCCESS', 0] }],
    pending: [{ pointer: '/code', in: ['USERPAYING'] }],
    retryable: [{ pointer: '/code', in: ['SYSTEM_BUSY'] }],
    unknown: [{ pointer: '/code', in: ['BANKERROR'] }],
    fatal: [
      { pointer: '/code', in: ['SIGN_ERROR'] },
      { status: [400], message: 'deadline' },
    ],
  };
  const judge = (status: number, body: string) => {
    const { class: outcome, code } = classifyAnswer(answer(status, body), answers, { dedupes: false });
    return [outcome, code];
  };

  it('finds the business code in a 200', () => {
    expect(judge(200, '{"code":"SUCCESS"}')).toEqual(['accepted', 'business-SUCCESS']);
    expect(judge(200, '{"code":0}')).toEqual(['accepted', 'business-0']);
    expect(judge(200, '{"code":"USERPAYING"}')).toEqual(['pending', 'business-USERPAYING']);
    expect(judge(200, '{"code":"SYSTEM_BUSY"}')).toEqual(['retryable', 'business-SYSTEM_BUSY']);
    expect(judge(200, '{"code":"BANKERROR"}')).toEqual(['unknown', 'business-BANKERROR']);
    expect(judge(200, '{"code":"SIGN_ERROR"}')).toEqual(['fatal', 'business-SIGN_ERROR']);
  });

  it('does not take the text "0" for the number 0', () => {
    expect(judge(200, '{"code":"0"}')).toEqual(['unknown', 'unrecognised-answer']);
  });

  it('calls a 2xx that matches nothing unknown once success is described', () => {
    expect(judge(200, '{"code":"NEW_THING"}')).toEqual(['unknown', 'unrecognised-answer']);
    expect(judge(204, '')).toEqual(['unknown', 'unrecognised-answer']);
  });

  it('calls a body unreadable when a matcher had to read it', () => {
    expect(judge(200, '<html>Maintenance</html>')).toEqual(['unknown', 'unreadable-answer']);
    expect(judge(200, '{"code":"SUCC')).toEqual(['unknown', 'unreadable-answer']);
  });

  it('believes 429 and 503 without their body', () => {
    expect(judge(503, '<html>busy</html>')).toEqual(['target-down', 'http-503']);
    expect(judge(429, '')).toEqual(['target-down', 'http-429']);
  });

  it('asks fatal first, so that what must not be repeated wins', () => {
    const both: Answers = { ...NONE, fatal: [{ status: [200] }], retryable: [{ status: [200] }] };
    expect(classifyAnswer(answer(200), both, { dedupes: false }).class).toBe('fatal');
  });

  it('never throws for a matcher that is broken: the send has happened', () => {
    for (const matcher of [{ message: '(' }, { pointer: '/a~2' }]) {
      const found = classifyAnswer(answer(200, '{}'), { ...NONE, fatal: [matcher] }, { dedupes: false });
      expect(found).toEqual({ class: 'unknown', code: 'bad-matcher', unclassified: false });
    }
  });
});
