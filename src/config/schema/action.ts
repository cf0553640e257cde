import { z } from 'zod';
import { httpPath, jsonPointer } from './scalar.ts';

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
    status: z.array(z.int().min(100).max(599)).optional().describe('HTTP status is one of these'),
    pointer: jsonPointer.optional().describe('JSON pointer into the answer body'),
    in: z
      .array(z.union([z.string(), z.number(), z.boolean(), z.null()]))
      .optional()
      .describe('the value at `pointer` is one of these; left out: it exists'),
    message: z
      .string()
      .refine(isRegExp, 'is no regular expression; escape ( [ { * + ? with a backslash to mean the character')
      .optional()
      .describe('regular expression on the answer body'),
  })
  .refine((m) => m.status !== undefined || m.pointer !== undefined || m.message !== undefined, {
    message: 'matches everything; give status, pointer or message',
  })
  .meta({ id: 'matcher', description: 'recognises an answer; all that is given must hold' });

const answersSchema = z.strictObject({
  success: z.array(matcher).optional().describe('it worked; left out: every 2xx'),
  pending: z.array(matcher).default([]).describe('accepted, not final: look and wait, never resend'),
  retryable: z.array(matcher).default([]).describe('surely did nothing; try again'),
  unknown: z.array(matcher).default([]).describe('may have worked; only a look can tell'),
  fatal: z.array(matcher).default([]).describe('refused for good; to a person'),
});

const httpAction = z.strictObject({
  type: z.literal('http').describe('a call of an HTTP API'),
  method: z.enum(['POST', 'PUT', 'PATCH', 'DELETE']).default('POST').describe('HTTP method'),
  path: httpPath,
  query: z
    .record(z.string(), z.string())
    .default({})
    .describe('query parameters; values are percent-encoded'),
  headers: z
    .record(z.string(), z.string())
    .default({})
    .describe('headers of this call; they are stored, so credentials belong into the target’s headers'),
  body: z
    .json()
    .optional()
    .describe('JSON, or one string that is sent as it is; `{name|number}` makes a JSON number'),
  answers: answersSchema
    .describe('which answers mean what; what none recognises is told by its status')
    .prefault({}),
});

const sqlAction = z.strictObject({
  type: z.literal('sql').describe('a statement on a PostgreSQL database'),
  statement: z.string().min(1).describe('one statement; values as :name from bind'),
  bind: z.record(z.string(), z.string()).default({}).describe('what each :name of the statement stands for'),
  expectRows: z
    .int()
    .min(0)
    .optional()
    .describe('rows that the statement must touch, else all is rolled back; left out: 1'),
});

const moduleAction = z.strictObject({
  type: z.literal('module').describe('a function of your own'),
  module: z
    .string()
    .min(1)
    .describe('file with a default export made by defineAction, from the directory of the config'),
  input: z
    .json()
    .optional()
    .describe('given to the function, with the record’s values put in as exact texts'),
});

export const actionSchema = z
  .discriminatedUnion('type', [httpAction, sqlAction, moduleAction])
  .meta({ id: 'action', description: 'how the target is called' });

export type Action = z.output<typeof actionSchema>;
export type Answers = z.output<typeof answersSchema>;
export type Matcher = z.output<typeof matcher>;
