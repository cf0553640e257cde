import { z } from 'zod';
import { repairsSchema } from './repair.ts';
import { ruleSchema } from './rule.ts';
import { duration, name } from './scalar.ts';
import { sideSchema } from './side.ts';

const scheduleObject = z.strictObject({
  cron: z.string().min(1).describe('five fields: minute hour day-of-month month day-of-week'),
  timezone: z.string().optional().describe('IANA zone; left out: the config’s'),
  gap: z
    .enum(['run-after', 'skip'])
    .default('run-after')
    .describe('a local time that a clock change leaves out: run right after the gap, or not at all'),
  overlap: z
    .enum(['first', 'both', 'last'])
    .default('first')
    .describe('a local time that a clock change gives twice: which pass runs'),
  missed: z
    .enum(['collapse', 'each', 'skip'])
    .default('collapse')
    .describe('slots that passed unclaimed: one run for all, a run for each, or only the latest'),
  overlapping: z
    .enum(['skip', 'queue', 'allow'])
    .default('skip')
    .describe('what a slot does while an earlier scheduled run is not done'),
});

const windowSchema = z.strictObject({
  lookback: duration(
    'how far a scheduled run reaches back at least; a schedule needs this or day',
  ).optional(),
  day: z.literal('yesterday').optional().describe('the whole previous local day instead of a lookback'),
  settle: duration('records younger than this are left for the next run').prefault('30s'),
  chunk: duration('longer windows are cut into pieces of this length').prefault('6h'),
  maxHoldback: duration('most that open transactions may hold the upper bound back').prefault('15m'),
  maxTransactionAge: duration(
    'longest transaction that writes records, where open ones cannot be seen',
  ).optional(),
});

export const reconciliationSchema = z.strictObject({
  mode: z
    .enum(['check', 'compensate'])
    .default('check')
    .describe('a scheduled run only checks until compensate is written (rule 5.12)'),
  schedule: z
    .union([z.string(), scheduleObject])
    .transform(
      (s): z.output<typeof scheduleObject> => (typeof s === 'string' ? scheduleObject.parse({ cron: s }) : s),
    )
    .optional()
    .describe('when it runs: five cron fields, or a group of keys; left out: only when asked to'),
  window: windowSchema.describe('which records a run reads').prefault({}),
  source: sideSchema.describe('the side the work starts from'),
  downstream: sideSchema.describe('the side that should have received it'),
  key: z.array(z.string().min(1)).min(1).describe('names of the business key’s parts'),
  businessDate: z
    .string()
    .optional()
    .describe('source field whose date goes into the idempotency key; left out: the side’s time'),
  traceId: z.string().optional().describe('source field that holds the record’s trace id'),
  compare: z.record(z.string(), ruleSchema).describe('field -> how it is compared'),
  plan: z
    .enum(['auto', 'merge', 'lookup'])
    .default('auto')
    .describe('how a window is read; docs/reference/plans.md says which plan does what'),
  recheck: z
    .strictObject({
      delay: duration('pause before a suspect is looked at again').prefault('30s'),
      looks: z.int().min(1).default(6).describe('looks at a record whose source keeps moving'),
    })
    .describe('the second look at what seems to differ')
    .prefault({}),
  guard: z
    .strictObject({
      maxDiffs: z.int().min(0).default(10_000).describe('more diffs than this put the run on hold'),
      maxRatio: z
        .number()
        .min(0)
        .max(1)
        .default(0.2)
        .describe('a larger share of the records of the larger side puts the run on hold'),
      minRecords: z.int().min(0).default(100).describe('the ratio counts from this many records'),
    })
    .describe('what is found too much to be repaired without a person')
    .prefault({}),
  look: z
    .strictObject({ maxAge: duration('a look older than this is repeated before a send').prefault('2s') })
    .describe('the look before a send')
    .prefault({}),
  relook: duration('how often open diffs are looked at again').prefault('1h'),
  maxAge: duration('older diffs are reported, never replayed by themselves').prefault('7d'),
  relapse: duration('a diff that is back within this after its repair is flapping').prefault('24h'),
  orderScope: name
    .optional()
    .describe(
      'compensations of one key and scope run one after the other; left out: the reconciliation’s name',
    ),
  maxSuspects: z
    .int()
    .min(1)
    .default(1_000_000)
    .describe('a reading stops with an error when more keys of one chunk are suspect or undecided'),
  repair: repairsSchema.describe('what to do about diffs, by kind; left out: report').prefault({}),
});

export type Reconciliation = z.output<typeof reconciliationSchema>;
export type Schedule = z.output<typeof scheduleObject>;
export type WindowPolicy = z.output<typeof windowSchema>;
