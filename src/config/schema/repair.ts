import { z } from 'zod';
import { actionSchema } from './action.ts';
import { duration, name } from './scalar.ts';

const fieldCondition = z.strictObject({
  source: z.array(z.string()).optional().describe('canonical texts that the source’s field may hold'),
  downstream: z.array(z.string()).optional().describe('canonical texts that the downstream’s field may hold'),
});

const repairSchema = z
  .strictObject({
    when: z
      .record(z.string(), fieldCondition)
      .optional()
      .describe('mismatched: this repair applies when each named field holds one of these values'),
    side: z.enum(['downstream', 'source']).default('downstream').describe('the side that is repaired'),
    target: name.describe('name of the target that is called'),
    action: actionSchema.describe('what is called'),
    operation: name.optional().describe('part of the idempotency key; left out: the kind'),
    allowDelete: z.boolean().default(false).describe('must be true for an action that deletes'),
    idempotency: z
      .strictObject({
        from: z
          .string()
          .optional()
          .describe('source field with the key of the original call; left out: the template'),
        template: z
          .string()
          .default('{reconciliation}:{businessKey}:{operation}:{businessDate}')
          .describe('what the idempotency key is made of, without `from`'),
      })
      .describe('where the idempotency key comes from')
      .prefault({}),
    verify: z
      .strictObject({
        within: duration('how long a send has to become visible').prefault('30s'),
        every: duration('pause between looks').prefault('1s'),
      })
      .describe('the looks after a send')
      .prefault({}),
    onNotTaken: z
      .enum(['escalate', 'resend'])
      .default('escalate')
      .describe(
        'accepted and not visible within `verify.within`: to a person, or one more round under a new revision',
      ),
  })
  .meta({ id: 'repair', description: 'what to do about diffs of one kind' });

const report = z.literal('report');
const repairOrReport = z.union([report, repairSchema]);

export const repairsSchema = z.strictObject({
  missing: repairOrReport.default('report').describe('for records that only the source has'),
  mismatched: z
    .union([report, repairSchema, z.array(repairSchema).min(1)])
    .default('report')
    .describe('for records that differ; of a list the first whose `when` holds is taken'),
  extra: repairOrReport.default('report').describe('for records that only the downstream has'),
  duplicate: report
    .default('report')
    .describe('for keys that a side has more than once; they are always reported only'),
});

export type Repair = z.output<typeof repairSchema>;
