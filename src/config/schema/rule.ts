import { z } from 'zod';
import { duration } from './scalar.ts';

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
  type: typeName.optional().describe('what kind of value it is; left out: from the catalogue, else text'),
  ignore: z.boolean().default(false).describe('read and stored, never compared'),
  map: z
    .record(z.string(), z.string())
    .optional()
    .describe('source value -> downstream value that means the same'),
  tolerance: z
    .string()
    .regex(/^\d+(\.\d+)?$/, 'is no decimal number; write one in quotes, such as "0.01"')
    .optional()
    .describe('decimal, integer: largest absolute difference that is forgiven; left out: none'),
  precision: z
    .enum(['second', 'millisecond', 'microsecond'])
    .optional()
    .describe('instant: cut both to this before comparing; left out: as they are'),
  within: duration('instant: largest difference that is forgiven; left out: none').optional(),
  zone: z.string().optional().describe('IANA zone of local times without offset'),
  trim: z.boolean().default(false).describe('text: without white space at the ends'),
  ignoreCase: z.boolean().default(false).describe('text: in lower case'),
  unicode: z.enum(['NFC', 'NFKC']).optional().describe('text: in this Unicode form; left out: as it is'),
});

export const ruleSchema = z
  .union([typeName, z.literal('ignore'), ruleObject])
  .transform((rule): z.output<typeof ruleObject> => {
    if (typeof rule !== 'string') return rule;
    return ruleObject.parse(rule === 'ignore' ? { ignore: true } : { type: rule });
  })
  .meta({ id: 'rule', description: 'how one field is compared' });

export type Rule = z.output<typeof ruleObject>;
export type TypeName = z.output<typeof typeName>;
