import { z } from 'zod';
import { parseDuration } from './duration.ts';
import { Secret } from './secret.ts';

/**
 * The one description of a config file. Types, defaults, the editor schema (`config/trueup.schema.json`) and the
 * reference page come from here. Durations become milliseconds, secrets become `Secret`. Messages are predicates of the
 * value, which `issues.ts` puts before them; what stands after `; ` is the hint.
 */

const duration = (description: string) =>
  z
    .string()
    .transform((text, ctx) => {
      const ms = parseDuration(text);
      if (ms === undefined) {
        ctx.addIssue({ code: 'custom', message: 'is no duration; write 250ms, 15m, 1h30m or PT15M' });
        return z.NEVER;
      }
      return ms;
    })
    .meta({ description: `${description} (a duration: 250ms, 15m, 1h30m, PT15M)` });

const secret = (description: string) =>
  z
    .string()
    .min(1, 'is empty; set the environment variable or file it comes from')
    .transform((text) => new Secret(text))
    .meta({ description, writeOnly: true });

const name = z
  .string()
  .regex(
    /^[a-z][a-z0-9_-]{0,62}$/,
    'is no valid name; use lower-case letters, digits, - and _, starting with a letter',
  );

const jsonPointer = z
  .string()
  .regex(/^(\/([^/~]|~[01])*)*$/, 'is no JSON pointer; write /items/0/id, or "" for the whole document');

// ---------------------------------------------------------------------------------------------------- targets

const waitSchema = z.strictObject({
  kind: z.enum(['fixed', 'incremental', 'exponential', 'random']).default('exponential'),
  base: duration('first wait').prefault('500ms'),
  factor: z.number().min(1).default(2).meta({ description: 'growth of an exponential wait' }),
  step: duration('what an incremental wait adds each time').prefault('500ms'),
  cap: duration('longest wait, jitter included').prefault('8s'),
  jitter: z
    .number()
    .min(0)
    .max(1)
    .default(0.2)
    .meta({ description: 'share of the wait that is random, each way' }),
});

const retrySchema = z.strictObject({
  attempts: z.int().min(1, 'is too small; it counts the first try, so it is at least 1').default(3),
  elapsed: duration('no attempt starts later than this after the first').optional(),
  wait: waitSchema.prefault({}),
});

const watermark = z.union([z.int().min(1), z.literal('unlimited')]);

const targetSchema = z.strictObject({
  url: secret('http(s):// base address, or postgres:// for sql actions').optional(),
  headers: z.record(z.string(), secret('header value')).default({}),
  watermark: watermark
    .default(100)
    .meta({ description: 'most sends in any 60 seconds; "unlimited" must be asked for by name' }),
  reads: watermark.default(600).meta({ description: 'most read calls (looks, lists) in any 60 seconds' }),
  concurrency: z.int().min(1).max(1000).default(16).meta({ description: 'most calls in flight per worker' }),
  upstream: name.optional().meta({ description: 'targets that name the same upstream share one gate' }),
  timeout: z
    .strictObject({
      connect: duration('until connected').prefault('2s'),
      answer: duration('from the call until the whole answer').prefault('5s'),
    })
    .prefault({}),
  maxSlow: duration('a send that already took longer is not retried by itself').prefault('30s'),
  idempotency: z
    .strictObject({
      dedupes: z
        .boolean()
        .default(false)
        .meta({ description: 'the target answers a repeated key with the first result' }),
      header: z.string().default('Idempotency-Key'),
      keyRetention: duration('how long the target remembers a key').prefault('24h'),
    })
    .prefault({}),
  appliesWithin: duration('after this a send that is not visible was not applied (rule 6.10)').optional(),
  giveUpAfter: duration('how long a target may stay down before its compensations go to a person').prefault(
    '24h',
  ),
  retry: retrySchema.prefault({}),
  breaker: z
    .strictObject({
      consecutive: z.int().min(1).default(10),
      ratio: z.number().gt(0).max(1).default(0.3),
      minimum: z.int().min(1).default(20),
      open: duration('how long the breaker stays open before a probe').prefault('30s'),
      slow: duration('an answer slower than this lowers the rate').prefault('4s'),
    })
    .prefault({}),
});

// ------------------------------------------------------------------------------------------------------ sides

const mapping = z.union([z.array(z.string().min(1)).min(1), z.record(z.string(), z.string())]);

const postgresSide = z.strictObject({
  type: z.literal('postgres'),
  url: secret('postgres:// address of a user that can only read'),
  table: z.string().optional().meta({ description: 'table or view, with its schema if needed' }),
  query: z.string().optional().meta({ description: 'a SELECT to use instead of a table' }),
  key: mapping.optional().meta({ description: 'key name -> column; the same names when left out' }),
  time: z.string().optional().meta({ description: 'timestamp column that selects the window' }),
  fields: mapping.optional().meta({ description: 'compared or sent fields: name -> column' }),
  where: z.string().optional().meta({ description: 'SQL condition that selects the records' }),
  pageSize: z.int().min(1).max(50_000).default(5000),
  statementTimeout: duration('longest single statement').prefault('30s'),
  readLag: duration('how far this side can be behind its primary').prefault('0s'),
});

const mysqlSide = z.strictObject({
  ...postgresSide.shape,
  type: z.literal('mysql'),
  url: secret('mysql:// or mariadb:// address of a user that can only read'),
  table: z.string().optional().meta({ description: 'table or view, with its database if needed' }),
  time: z
    .string()
    .optional()
    .meta({ description: 'timestamp, datetime or date column that selects the window' }),
});

const httpCall = {
  method: z.enum(['GET', 'POST']).default('GET'),
  path: z.string().regex(/^\//, 'does not start with /; write a path such as /orders'),
  query: z.record(z.string(), z.string()).default({}),
  body: z.json().optional(),
  items: jsonPointer.default('').meta({ description: 'where the list of records stands in the answer' }),
};

const httpSide = z.strictObject({
  type: z.literal('http'),
  target: name.meta({ description: 'gives the address, headers, timeouts and the read gate' }),
  lookup: z
    .strictObject({
      ...httpCall,
      batch: z
        .int()
        .min(1)
        .max(1000)
        .default(1)
        .meta({ description: 'keys per call; 1: the path holds {key}' }),
    })
    .meta({ description: 'reads records by key; {keys} is the list, {key} the single one' }),
  list: z
    .strictObject({
      ...httpCall,
      next: jsonPointer.optional().meta({ description: 'where the next cursor stands; absent or null ends' }),
      firstPage: z
        .int()
        .optional()
        .meta({ description: 'for {page} lists: the first number; an empty page ends' }),
    })
    .optional()
    .meta({ description: 'lists a window: {from}, {to} and {cursor} or {page}' }),
  key: z.record(z.string(), jsonPointer).meta({ description: 'key name -> JSON pointer within a record' }),
  time: jsonPointer.optional(),
  fields: z.record(z.string(), jsonPointer).default({}),
  readLag: duration('how far answers can be behind the truth').prefault('0s'),
});

export const sideSchema = z
  .discriminatedUnion('type', [postgresSide, mysqlSide, httpSide])
  .meta({ id: 'side' });

// ------------------------------------------------------------------------------------------------------ rules

const typeName = z.enum([
  'text',
  'integer',
  'decimal',
  'float',
  'boolean',
  'instant',
  'date',
  'uuid',
  'json',
  'bytes',
]);

const ruleObject = z.strictObject({
  type: typeName.optional().meta({ description: 'left out: from the catalogue, else text' }),
  ignore: z.boolean().default(false).meta({ description: 'read and stored, never compared' }),
  map: z
    .record(z.string(), z.string())
    .optional()
    .meta({ description: 'source value -> downstream value that means the same' }),
  tolerance: z
    .string()
    .regex(/^\d+(\.\d+)?$/, 'is no decimal number; write one in quotes, such as "0.01"')
    .optional()
    .meta({ description: 'decimal, integer: largest absolute difference that is forgiven' }),
  precision: z.enum(['second', 'millisecond', 'microsecond']).optional(),
  within: duration('instant: largest difference that is forgiven').optional(),
  zone: z.string().optional().meta({ description: 'IANA zone of local times without offset' }),
  trim: z.boolean().default(false),
  ignoreCase: z.boolean().default(false),
  unicode: z.enum(['NFC', 'NFKC']).optional(),
});

export const ruleSchema = z
  .union([typeName, z.literal('ignore'), ruleObject])
  .transform((rule): z.output<typeof ruleObject> => {
    if (typeof rule !== 'string') return rule;
    return ruleObject.parse(rule === 'ignore' ? { ignore: true } : { type: rule });
  })
  .meta({ id: 'rule' });

// ----------------------------------------------------------------------------------------------------- repair

function isRegExp(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}

const matcher = z
  .strictObject({
    status: z.array(z.int().min(100).max(599)).optional(),
    pointer: jsonPointer.optional().meta({ description: 'JSON pointer into the answer body' }),
    in: z.array(z.union([z.string(), z.number(), z.boolean(), z.null()])).optional(),
    message: z
      .string()
      .refine(isRegExp, 'is no regular expression; escape ( [ { * + ? with a backslash to mean the character')
      .optional()
      .meta({ description: 'regular expression on the answer body' }),
  })
  .refine((m) => m.status !== undefined || m.pointer !== undefined || m.message !== undefined, {
    message: 'matches everything; give status, pointer or message',
  })
  .meta({ id: 'matcher' });

const answersSchema = z.strictObject({
  success: z.array(matcher).optional().meta({ description: 'left out: every 2xx' }),
  pending: z
    .array(matcher)
    .default([])
    .meta({ description: 'accepted, not final: look and wait, never resend' }),
  retryable: z.array(matcher).default([]),
  unknown: z.array(matcher).default([]),
  fatal: z.array(matcher).default([]),
});

const httpAction = z.strictObject({
  type: z.literal('http'),
  method: z.enum(['POST', 'PUT', 'PATCH', 'DELETE']).default('POST'),
  path: z.string().regex(/^\//, 'does not start with /; write a path such as /orders'),
  query: z.record(z.string(), z.string()).default({}),
  headers: z.record(z.string(), z.string()).default({}),
  body: z.json().optional(),
  answers: answersSchema.prefault({}),
});

const sqlAction = z.strictObject({
  type: z.literal('sql'),
  statement: z.string().min(1).meta({ description: 'one statement; values as :name from bind' }),
  bind: z.record(z.string(), z.string()).default({}),
  expectRows: z.int().min(0).optional().meta({ description: 'left out: 1' }),
});

const moduleAction = z.strictObject({
  type: z.literal('module'),
  module: z.string().min(1).meta({ description: 'file with a default export made by defineAction' }),
  input: z.json().optional(),
});

export const actionSchema = z
  .discriminatedUnion('type', [httpAction, sqlAction, moduleAction])
  .meta({ id: 'action' });

const fieldCondition = z.strictObject({
  source: z.array(z.string()).optional(),
  downstream: z.array(z.string()).optional(),
});

const repairSchema = z
  .strictObject({
    when: z.record(z.string(), fieldCondition).optional().meta({
      description: 'mismatched: this repair applies when each named field holds one of these values',
    }),
    side: z
      .enum(['downstream', 'source'])
      .default('downstream')
      .meta({ description: 'the side that is repaired' }),
    target: name,
    action: actionSchema,
    operation: name.optional().meta({ description: 'part of the idempotency key; left out: the kind' }),
    allowDelete: z.boolean().default(false),
    idempotency: z
      .strictObject({
        from: z.string().optional().meta({ description: 'source field with the key of the original call' }),
        template: z.string().default('{reconciliation}:{businessKey}:{operation}:{businessDate}'),
      })
      .prefault({}),
    verify: z
      .strictObject({
        within: duration('how long a send has to become visible').prefault('30s'),
        every: duration('pause between looks').prefault('1s'),
      })
      .prefault({}),
    onNotTaken: z.enum(['escalate', 'resend']).default('escalate'),
  })
  .meta({ id: 'repair' });

const report = z.literal('report');
const repairOrReport = z.union([report, repairSchema]);

// ---------------------------------------------------------------------------------------------- reconciliation

const scheduleObject = z.strictObject({
  cron: z.string().min(1).meta({ description: 'five fields: minute hour day-of-month month day-of-week' }),
  timezone: z.string().optional().meta({ description: 'IANA zone; left out: the config’s' }),
  gap: z.enum(['run-after', 'skip']).default('run-after'),
  overlap: z.enum(['first', 'both', 'last']).default('first'),
  missed: z.enum(['collapse', 'each', 'skip']).default('collapse'),
  overlapping: z.enum(['skip', 'queue', 'allow']).default('skip'),
});

const windowSchema = z.strictObject({
  lookback: duration('how far a scheduled run reaches back').optional(),
  day: z.literal('yesterday').optional().meta({ description: 'the whole previous local day instead' }),
  settle: duration('records younger than this are left for the next run').prefault('30s'),
  chunk: duration('longer windows are cut into pieces of this length').prefault('6h'),
  maxHoldback: duration('most that open transactions may hold the upper bound back').prefault('15m'),
  maxTransactionAge: duration('longest transaction that writes records').optional(),
});

const reconciliationSchema = z.strictObject({
  mode: z
    .enum(['check', 'compensate'])
    .default('check')
    .meta({ description: 'a scheduled run only checks until compensate is written (rule 5.12)' }),
  schedule: z
    .union([z.string(), scheduleObject])
    .transform(
      (s): z.output<typeof scheduleObject> => (typeof s === 'string' ? scheduleObject.parse({ cron: s }) : s),
    )
    .optional(),
  window: windowSchema.prefault({}),
  source: sideSchema,
  downstream: sideSchema,
  key: z.array(z.string().min(1)).min(1).meta({ description: 'names of the business key’s parts' }),
  businessDate: z.string().optional().meta({
    description: 'source field whose date goes into the idempotency key; left out: the side’s time',
  }),
  traceId: z.string().optional().meta({ description: 'source field that holds the record’s trace id' }),
  compare: z.record(z.string(), ruleSchema),
  plan: z.enum(['auto', 'merge', 'lookup']).default('auto'),
  recheck: z
    .strictObject({
      delay: duration('pause before a suspect is looked at again').prefault('30s'),
      looks: z.int().min(1).default(6).meta({ description: 'looks at a record whose source keeps moving' }),
    })
    .prefault({}),
  guard: z
    .strictObject({
      maxDiffs: z.int().min(0).default(10_000),
      maxRatio: z.number().min(0).max(1).default(0.2),
      minRecords: z
        .int()
        .min(0)
        .default(100)
        .meta({ description: 'the ratio counts from this many records' }),
    })
    .prefault({}),
  look: z
    .strictObject({ maxAge: duration('a look older than this is repeated before a send').prefault('2s') })
    .prefault({}),
  relook: duration('how often open diffs are looked at again').prefault('1h'),
  maxAge: duration('older diffs are reported, never replayed by themselves').prefault('7d'),
  relapse: duration('a diff that is back within this after its repair is flapping').prefault('24h'),
  orderScope: name
    .optional()
    .meta({ description: 'compensations of one key and scope run one after the other' }),
  maxSuspects: z.int().min(1).default(1_000_000),
  repair: z
    .strictObject({
      missing: repairOrReport.default('report'),
      mismatched: z.union([report, repairSchema, z.array(repairSchema).min(1)]).default('report'),
      extra: repairOrReport.default('report'),
      duplicate: report.default('report'),
    })
    .prefault({}),
});

// ----------------------------------------------------------------------------------------------------- alerts

const channelBase = { rate: z.int().min(1).default(20).meta({ description: 'most messages in 60 seconds' }) };

export const channelSchema = z.discriminatedUnion('type', [
  z.strictObject({
    ...channelBase,
    type: z.literal('webhook'),
    url: secret('address'),
    secrets: z.array(secret('whsec_ signing secret (Standard Webhooks); several while rotating')).default([]),
    headers: z.record(z.string(), secret('header value')).default({}),
  }),
  z.strictObject({ ...channelBase, type: z.literal('slack'), url: secret('incoming webhook address') }),
  z.strictObject({
    ...channelBase,
    type: z.literal('dingtalk'),
    url: secret('robot address with its access_token'),
    secret: secret('SEC… signing secret').optional(),
    keyword: z.string().optional(),
  }),
]);

const alertsSchema = z.strictObject({
  channels: z.record(name, channelSchema).default({}),
  warning: z.array(name).default([]).meta({ description: 'channels for what is being repaired' }),
  action: z.array(name).default([]).meta({ description: 'channels for what needs a person' }),
  repeat: duration('open alerts are repeated after this').prefault('4h'),
  link: z.string().optional().meta({ description: 'address of the page, put into messages' }),
});

// ----------------------------------------------------------------------------------------------------- config

export const configSchema = z.strictObject({
  version: z.literal(1),
  timezone: z.string().default('UTC').meta({ description: 'IANA zone for schedules and printed times' }),
  store: z
    .strictObject({
      url: secret('postgres:// address; left out: DATABASE_URL, else the embedded server').optional(),
    })
    .prefault({}),
  queue: z
    .strictObject({
      url: secret('redis://, rediss:// or postgres://; left out: QUEUE_URL, else the store').optional(),
      sentinel: z
        .strictObject({
          name: z.string(),
          hosts: z
            .array(z.string().regex(/^[^:]+:\d+$/, 'is not host:port; write one such as redis-1:26379'))
            .min(1),
          password: secret('Sentinel password').optional(),
        })
        .optional(),
      cluster: z
        .array(z.string().regex(/^[^:]+:\d+$/, 'is not host:port; write one such as redis-1:26379'))
        .optional(),
      tls: z
        .strictObject({ ca: z.string().optional(), rejectUnauthorized: z.boolean().default(true) })
        .optional(),
    })
    .prefault({}),
  http: z
    .strictObject({ host: z.string().default('127.0.0.1'), port: z.int().min(0).max(65_535).default(7070) })
    .prefault({}),
  log: z
    .strictObject({ level: z.enum(['error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info') })
    .prefault({}),
  targets: z.record(name, targetSchema).default({}),
  reconciliations: z.record(name, reconciliationSchema),
  alerts: alertsSchema.prefault({}),
  retention: z
    .strictObject({
      runs: duration('finished runs').prefault('90d'),
      diffs: duration('closed diffs, their compensations and attempts').prefault('90d'),
    })
    .prefault({}),
});

export type Config = z.output<typeof configSchema>;
export type ConfigInput = z.input<typeof configSchema>;
export type Reconciliation = z.output<typeof reconciliationSchema>;
export type Target = z.output<typeof targetSchema>;
export type SideConfig = z.output<typeof sideSchema>;
export type PostgresSideConfig = z.output<typeof postgresSide>;
export type MysqlSideConfig = z.output<typeof mysqlSide>;
export type HttpSideConfig = z.output<typeof httpSide>;
export type Rule = z.output<typeof ruleObject>;
export type TypeName = z.output<typeof typeName>;
export type Repair = z.output<typeof repairSchema>;
export type Action = z.output<typeof actionSchema>;
export type Answers = z.output<typeof answersSchema>;
export type Matcher = z.output<typeof matcher>;
export type RetryPolicy = z.output<typeof retrySchema>;
export type WaitPolicy = z.output<typeof waitSchema>;
export type Schedule = z.output<typeof scheduleObject>;
export type WindowPolicy = z.output<typeof windowSchema>;
export type ChannelConfig = z.output<typeof channelSchema>;
export type Watermark = z.output<typeof watermark>;
