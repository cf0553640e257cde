import { z } from 'zod';
import { duration, httpPath, jsonPointer, name, secret } from './scalar.ts';

const mapping = z.union([z.array(z.string().min(1)).min(1), z.record(z.string(), z.string())]);

const postgresSide = z.strictObject({
  type: z.literal('postgres').describe('a table, view or query of PostgreSQL'),
  url: secret('postgres:// address of a user that can only read'),
  table: z.string().optional().describe('table or view, with its schema if needed; this or query'),
  query: z.string().optional().describe('a SELECT to use instead of a table'),
  key: mapping.optional().describe('key name -> column; the same names when left out'),
  time: z
    .string()
    .optional()
    .describe('timestamp column that selects the window; left out: records are only looked up by key'),
  fields: mapping.optional().describe('compared or sent fields: name -> column'),
  where: z.string().optional().describe('SQL condition that selects the records; left out: all'),
  pageSize: z.int().min(1).max(50_000).default(5000).describe('records fetched or looked up at once'),
  statementTimeout: duration('longest single statement').prefault('30s'),
  readLag: duration('how far this side can be behind its primary').prefault('0s'),
});

const httpCall = {
  method: z.enum(['GET', 'POST']).default('GET').describe('HTTP method'),
  path: httpPath,
  query: z
    .record(z.string(), z.string())
    .default({})
    .describe('query parameters; values are percent-encoded'),
  body: z.json().optional().describe('JSON body; a string that is one placeholder becomes its value'),
  items: jsonPointer
    .default('')
    .describe('JSON pointer to the list of records in the answer; "" is the answer itself'),
};

const httpSide = z.strictObject({
  type: z.literal('http').describe('an API that answers JSON'),
  target: name.describe('target that gives the address, headers, timeouts and the read gate'),
  lookup: z
    .strictObject({
      ...httpCall,
      batch: z.int().min(1).max(1000).default(1).describe('keys per call; 1: the path holds {key}'),
    })
    .describe('reads records by key; {keys} is the list, {key} the single one'),
  list: z
    .strictObject({
      ...httpCall,
      next: jsonPointer
        .optional()
        .describe('JSON pointer to the next cursor in the answer; absent or null ends'),
      firstPage: z.int().optional().describe('for {page} lists: the first number; an empty page ends'),
    })
    .optional()
    .describe('lists a window: {from}, {to} and {cursor} or {page}; left out: records are only looked up'),
  key: z.record(z.string(), jsonPointer).describe('key name -> JSON pointer within a record'),
  time: jsonPointer.optional().describe('JSON pointer to the record’s time'),
  fields: z
    .record(z.string(), jsonPointer)
    .default({})
    .describe('compared or sent fields: name -> JSON pointer within a record'),
  readLag: duration('how far answers can be behind the truth').prefault('0s'),
});

export const sideSchema = z
  .discriminatedUnion('type', [postgresSide, httpSide])
  .meta({ id: 'side', description: 'how one side is read' });

export type SideConfig = z.output<typeof sideSchema>;
export type PostgresSideConfig = z.output<typeof postgresSide>;
export type HttpSideConfig = z.output<typeof httpSide>;
