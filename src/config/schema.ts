import { z } from 'zod';
import { alertsSchema } from './schema/alerts.ts';
import { queueSchema } from './schema/queue.ts';
import { reconciliationSchema } from './schema/reconciliation.ts';
import { duration, name, secret } from './schema/scalar.ts';
import { targetSchema } from './schema/target.ts';

/**
 * The one description of a config file. Types, defaults, the editor schema (`config/trueup.schema.json`) and the
 * reference page come from here. Durations become milliseconds, secrets become `Secret`.
 */
export const configSchema = z.strictObject({
  version: z.literal(1).describe('version of this file’s format'),
  timezone: z.string().default('UTC').describe('IANA zone for schedules and printed times'),
  store: z
    .strictObject({
      url: secret('postgres:// address; left out: DATABASE_URL, else the embedded server').optional(),
    })
    .describe('where trueup keeps its own records')
    .prefault({}),
  queue: queueSchema.describe('what carries the jobs').prefault({}),
  http: z
    .strictObject({
      host: z.string().default('127.0.0.1').describe('address that /healthz, /readyz and /metrics listen on'),
      port: z.int().min(0).max(65_535).default(7070).describe('their port; 0 takes any free one'),
    })
    .describe('health checks and metrics')
    .prefault({}),
  log: z
    .strictObject({
      level: z
        .enum(['error', 'warn', 'info', 'debug', 'trace', 'silent'])
        .default('info')
        .describe('lowest level of the log of `trueup up` and `trueup worker`; other commands log warnings'),
    })
    .describe('the log on stderr')
    .prefault({}),
  targets: z.record(name, targetSchema).default({}).describe('what is called, by a name you choose'),
  reconciliations: z.record(name, reconciliationSchema).describe('what is compared, by a name you choose'),
  alerts: alertsSchema.describe('who is told').prefault({}),
  retention: z
    .strictObject({
      runs: duration('finished runs').prefault('90d'),
      diffs: duration('closed diffs, their compensations and attempts').prefault('90d'),
    })
    .describe('how long ended records are kept')
    .prefault({}),
});

export type Config = z.output<typeof configSchema>;
export type ConfigInput = z.input<typeof configSchema>;
export { type Action, type Answers, actionSchema, type Matcher } from './schema/action.ts';
export { type ChannelConfig, channelSchema } from './schema/alerts.ts';
export type { Reconciliation, Schedule, WindowPolicy } from './schema/reconciliation.ts';
export type { Repair } from './schema/repair.ts';
export { type Rule, ruleSchema, type TypeName } from './schema/rule.ts';
export {
  type HttpSideConfig,
  type PostgresSideConfig,
  type SideConfig,
  sideSchema,
} from './schema/side.ts';
export type { RetryPolicy, Target, WaitPolicy, Watermark } from './schema/target.ts';
