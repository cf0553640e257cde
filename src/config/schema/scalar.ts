import { z } from 'zod';
import { parseDuration } from '../duration.ts';
import { Secret } from '../secret.ts';

/*
 * Values that many keys share. Messages are predicates of the value, which `issues.ts` puts before them; what stands
 * after `; ` is the hint. Descriptions are shown by editors, by the reference page and by the message about a missing
 * key, so each key has one.
 */

/** A text such as `15m`; milliseconds once parsed. */
export const duration = (description: string) =>
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

/** A text that is never shown; `Secret` once parsed. */
export const secret = (description: string) =>
  z
    .string()
    .min(1, 'is empty; set the environment variable or file it comes from')
    .transform((text) => new Secret(text))
    .meta({ description, writeOnly: true });

export const name = z
  .string()
  .regex(
    /^[a-z][a-z0-9_-]{0,62}$/,
    'is no valid name; use lower-case letters, digits, - and _, starting with a letter',
  );

export const jsonPointer = z
  .string()
  .regex(/^(\/([^/~]|~[01])*)*$/, 'is no JSON pointer; write /items/0/id, or "" for the whole document');

export const httpPath = z
  .string()
  .regex(/^\//, 'does not start with /; write a path such as /orders')
  .describe('path after the target’s address; values are percent-encoded');

export const hostAndPort = z
  .string()
  .regex(/^[^:]+:\d+$/, 'is not host:port; write one such as redis-1:26379');
