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
  'time',
  'uuid',
  'json',
  'bytes',
  'array',
  'set',
]);

const amount = z
  .string()
  .regex(/^\d+(\.\d+)?%?$/, 'is no decimal number; write one in quotes, such as "0.01" or "0.1%"');

const currencyCode = z
  .string()
  .regex(/^[A-Z]{3}$/, 'is no currency code of ISO 4217; write one such as USD, in capital letters');

const numbers = {
  tolerance: z
    .union([amount, z.record(currencyCode, amount)])
    .optional()
    .describe(
      'numbers: largest difference that is forgiven, such as "0.01", or "0.1%" of the larger number; or one for each currency; left out: none',
    ),
  currency: z
    .union([
      currencyCode,
      z.strictObject({
        field: z.string().min(1).describe('field whose text is the code, on one side or both'),
      }),
    ])
    .optional()
    .describe('integer, decimal: the currency of an amount, as a code or as the field that holds it'),
  minorUnits: z
    .enum(['source', 'downstream'])
    .optional()
    .describe('integer, decimal: the side that counts in the smallest unit of `currency` (cents)'),
  scale: z
    .literal('compare')
    .optional()
    .describe('decimal: 1.10 and 1.1 differ; left out: they are one number'),
  format: z
    .enum(['1,234.56', '1.234,56', '1 234,56', "1'234.56"])
    .optional()
    .describe('integer, decimal, float: how texts write numbers; a currency sign before them is allowed'),
  infiniteIsNull: z
    .boolean()
    .default(false)
    .describe('numbers, instant, date: NaN and infinities equal null, for a side that cannot hold them'),
};

const times = {
  precision: z
    .enum(['second', 'millisecond', 'microsecond'])
    .optional()
    .describe('instant, time: bring both to this before comparing; left out: as they are'),
  within: duration('instant, date, time: largest difference that is forgiven; left out: none').optional(),
  zone: z.string().optional().describe('instant, date: IANA zone of local times without offset'),
};

const texts = {
  padded: z
    .boolean()
    .default(false)
    .describe('text, bytes: without the blanks (of bytes: zeros) that fill up its end'),
  trim: z.boolean().default(false).describe('text: without white space at the ends'),
  ignoreCase: z.boolean().default(false).describe('text: in lower case; of a key only A to Z'),
  unicode: z.enum(['NFC', 'NFKC']).optional().describe('text: in this Unicode form; left out: as it is'),
  emptyIsNull: z.boolean().default(false).describe('text: the empty text equals null, as in Oracle'),
};

const structures = {
  numbers: z
    .literal('float')
    .optional()
    .describe('json: its numbers compare as floats of 64 bits; left out: exactly'),
  encoding: z
    .enum(['hex', 'base64', 'escape'])
    .optional()
    .describe('bytes: how texts write them; left out: hex, after \\x, 0x or nothing'),
  of: z
    .enum(['text', 'integer', 'decimal', 'float', 'boolean', 'instant', 'date', 'time', 'uuid', 'json'])
    .optional()
    .describe('array, set: what its elements are; left out: text'),
  repeats: z
    .enum(['count', 'ignore'])
    .optional()
    .describe('set: whether an element that stands twice counts twice; left out: count'),
};

const ruleObject = z.strictObject({
  type: typeName.optional().describe('what kind of value it is; left out: from the catalogue, else text'),
  ignore: z.boolean().default(false).describe('read and stored, never compared'),
  map: z
    .record(z.string(), z.string())
    .optional()
    .describe('source value -> downstream value that means the same'),
  ...numbers,
  rounding: z
    .enum(['floor', 'half-up', 'half-even'])
    .optional()
    .describe(
      'how `precision` is reached (left out: floor), or an amount brought to whole minor units (left out: not at all)',
    ),
  ...times,
  ...texts,
  ...structures,
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
