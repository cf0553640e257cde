import { z } from 'zod';
import { duration, name, secret } from './scalar.ts';

const waitSchema = z.strictObject({
  kind: z
    .enum(['fixed', 'incremental', 'exponential', 'random'])
    .default('exponential')
    .describe('how the wait grows from attempt to attempt; `random` draws between base and cap'),
  base: duration('first wait').prefault('500ms'),
  factor: z.number().min(1).default(2).describe('growth of an exponential wait'),
  step: duration('what an incremental wait adds each time').prefault('500ms'),
  cap: duration('longest wait, jitter included').prefault('8s'),
  jitter: z.number().min(0).max(1).default(0.2).describe('share of the wait that is random, each way'),
});

const retrySchema = z.strictObject({
  attempts: z
    .int()
    .min(1, 'is too small; it counts the first try, so it is at least 1')
    .default(3)
    .describe('most attempts that count, the first included; failures of the target do not count'),
  elapsed: duration('no attempt starts later than this after the first; left out: no limit').optional(),
  wait: waitSchema.describe('the pause before the next attempt').prefault({}),
});

const watermark = z.union([z.int().min(1), z.literal('unlimited')]);

export const targetSchema = z.strictObject({
  url: secret(
    'http(s):// base address, or postgres:// for sql actions; a module action needs none',
  ).optional(),
  headers: z
    .record(z.string(), secret('header value'))
    .default({})
    .describe(
      'sent with each call: the place for credentials, which are put in at the send and never stored',
    ),
  watermark: watermark
    .default(100)
    .describe('most sends in any 60 seconds; "unlimited" must be asked for by name'),
  reads: watermark.default(600).describe('most read calls (looks, lists) in any 60 seconds'),
  concurrency: z
    .int()
    .min(1)
    .max(1000)
    .default(16)
    .describe(
      'most calls in flight per worker; each worker counts for itself, and how many rows go to the queue counts all workers that are alive',
    ),
  upstream: name.optional().describe('targets that name the same upstream share one gate'),
  timeout: z
    .strictObject({
      connect: duration('until connected').prefault('2s'),
      answer: duration('from the call until the whole answer').prefault('5s'),
    })
    .describe('how long one call may take')
    .prefault({}),
  maxSlow: duration('a send that already took longer is not retried by itself').prefault('30s'),
  idempotency: z
    .strictObject({
      dedupes: z.boolean().default(false).describe('the target answers a repeated key with the first result'),
      header: z.string().default('Idempotency-Key').describe('HTTP header that carries the idempotency key'),
      keyRetention: duration('how long the target remembers a key').prefault('24h'),
    })
    .describe('what the target does with an idempotency key')
    .prefault({}),
  appliesWithin: duration(
    'after this a send that is not visible was not applied (rule 6.10); left out: it can never be said',
  ).optional(),
  giveUpAfter: duration('how long a target may stay down before its compensations go to a person').prefault(
    '24h',
  ),
  retry: retrySchema.describe('when and how often a failed send is tried again').prefault({}),
  breaker: z
    .strictObject({
      consecutive: z
        .int()
        .min(1)
        .default(10)
        .describe('failures of the target in a row that open the breaker'),
      ratio: z
        .number()
        .gt(0)
        .max(1)
        .default(0.3)
        .describe('share of failures in 60 s that opens the breaker'),
      minimum: z.int().min(1).default(20).describe('outcomes in 60 s from which the share counts'),
      open: duration('how long the breaker stays open before a probe').prefault('30s'),
      slow: duration('an answer slower than this lowers the rate').prefault('4s'),
    })
    .describe('when a failing target is left alone for a while')
    .prefault({}),
});

export type Target = z.output<typeof targetSchema>;
export type RetryPolicy = z.output<typeof retrySchema>;
export type WaitPolicy = z.output<typeof waitSchema>;
export type Watermark = z.output<typeof watermark>;
