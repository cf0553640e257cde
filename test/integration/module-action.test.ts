import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Outcome } from '../../src/compensate/action.ts';
import { createModuleSender } from '../../src/compensate/actions/module.ts';
import { sendContext, targetConfig } from '../support/sending.ts';

const LIBRARY = pathToFileURL(join(import.meta.dirname, '../../src/index.ts')).href;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'trueup-module-'));
});

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

/** Writes a module whose action has this body, and sends to it. */
async function send(
  name: string,
  body: string,
  context = sendContext(),
  input: unknown = {},
): Promise<Outcome> {
  const text = `import { defineAction, FatalError, RetryableError, UnknownOutcomeError } from ${JSON.stringify(LIBRARY)};
    export default defineAction({ name: ${JSON.stringify(name)}, run: async (ctx) => { ${body} } });`;
  return await sendFile(`${name}.mjs`, text, context, input);
}

async function sendFile(
  file: string,
  text: string,
  context = sendContext(),
  input: unknown = {},
): Promise<Outcome> {
  await writeFile(join(directory, file), text);
  const sender = createModuleSender({
    targetName: 'own',
    target: targetConfig({}),
    baseDirectory: directory,
  });
  return await sender.send({ type: 'module', module: `./${file}`, input }, context);
}

const summary = ({ class: outcomeClass, code }: Outcome) => `${outcomeClass} ${code}`;

describe('a module action', () => {
  it('is called with its input, the key, the difference and the trace, and says that it is done', async () => {
    const context = sendContext({ attempt: 2 });
    const body = `const { input, idempotencyKey, attempt, traceId, traceparent, diff } = ctx;
      return { outcome: 'done', answer: { input, idempotencyKey, attempt, traceId, traceparent, key: diff.key } };`;
    const outcome = await send('echo', body, context, { no: 'A-1' });
    const { idempotencyKey, traceId, traceparent } = context;
    expect(summary(outcome)).toBe('accepted done');
    expect(outcome.answer).toEqual({
      input: { no: 'A-1' },
      idempotencyKey,
      attempt: 2,
      traceId,
      traceparent,
      key: ['A-1'],
    });
  });

  it('may say that the effect is accepted and not final', async () => {
    expect(summary(await send('pending', `return { outcome: 'pending' };`))).toBe('pending pending');
  });

  it('takes a slot for each further call', async () => {
    let slots = 0;
    const context = sendContext({
      slot: async () => {
        slots += 1;
      },
    });
    await send('slots', `await ctx.slot(); await ctx.slot(); return { outcome: 'done' };`, context);
    expect(slots).toBe(2);
  });

  it('keeps an answer that JSON cannot hold in its printed form', async () => {
    const outcome = await send('bigint', `return { outcome: 'done', answer: { id: 12n } };`);
    expect(outcome).toMatchObject({ class: 'accepted', answer: '{ id: 12n }' });
  });
});

describe('what a module action throws decides what happens next', () => {
  it.each([
    ['retryable', 'RetryableError', `throw new RetryableError('busy');`],
    ['fatal', 'FatalError', `throw new FatalError('no such account');`],
    ['unknown', 'UnknownOutcomeError', `throw new UnknownOutcomeError('no answer');`],
    [
      'retryable',
      'a wrapped RetryableError',
      `throw new Error('outer', { cause: new RetryableError('busy') });`,
    ],
  ])('%s after %s', async (expected, name, body) => {
    const outcome = await send(name.replaceAll(/\W/g, '-').toLowerCase(), body);
    expect(outcome.class).toBe(expected);
    expect(outcome.error?.stack).toContain('Error');
  });

  it('unknown after a broken connection: the effect may be there', async () => {
    const outcome = await send('plain', `throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });`);
    expect(summary(outcome)).toBe('unknown ECONNRESET');
  });

  it('retryable, and said aloud, after an error that nobody knows', async () => {
    const outcome = await send('odd', `throw new Error('odd');`);
    expect(outcome).toMatchObject({ class: 'retryable', unclassified: true });
  });
});

describe('a module action that does not say how it ended', () => {
  it.each([
    ['nothing', ''],
    ['true', 'return true;'],
    ['another-word', `return { outcome: 'ok' };`],
  ])('is unknown, and told so: %s', async (name, body) => {
    const outcome = await send(name, body);
    expect(summary(outcome)).toBe('unknown no-outcome');
    expect(outcome.error?.message).toMatch(/return \{ outcome: 'done' \}.*may have acted/);
  });

  it('is abandoned at the deadline when it ignores the signal, and gets no further slot', async () => {
    let slots = 0;
    const told: string[] = [];
    const context = sendContext({
      signal: AbortSignal.timeout(150),
      slot: async () => {
        slots += 1;
      },
    });
    const body = `await new Promise((resolve) => setTimeout(resolve, 400));
      await ctx.slot().catch((error) => ctx.input.push(error.name));
      throw new Error('late');`;
    const outcome = await send('deaf', body, context, told);
    expect(summary(outcome)).toBe('unknown timeout-after-send');
    await expect.poll(() => told, { timeout: 5000 }).toEqual(['TimeoutError']);
    expect(slots).toBe(0);
  });

  it('is not called at all after the deadline', async () => {
    const called: string[] = [];
    const context = sendContext({ signal: AbortSignal.abort() });
    const outcome = await send(
      'too-late',
      `ctx.input.push('called'); return { outcome: 'done' };`,
      context,
      called,
    );
    expect(summary(outcome)).toBe('target-down timeout-before-send');
    expect(called).toEqual([]);
  });
});

describe('a module that cannot be used holds its target, not its records', () => {
  it.each([
    ['missing.mjs', undefined, 'module-not-loadable', /cannot load .*missing\.mjs/],
    ['broken.mjs', 'export default {{', 'module-not-loadable', /cannot load .*broken\.mjs/],
    ['bare.mjs', 'export default async () => 1', 'module-without-action', /export default defineAction/],
    ['empty.mjs', '', 'module-without-action', /export default defineAction/],
  ])('%s', async (file, text, code, message) => {
    if (text !== undefined) await writeFile(join(directory, file), text);
    const sender = createModuleSender({
      targetName: 'own',
      target: targetConfig({}),
      baseDirectory: directory,
    });
    const outcome = await sender.send({ type: 'module', module: file, input: null }, sendContext());
    expect(summary(outcome)).toBe(`target-down ${code}`);
    expect(outcome.error?.message).toMatch(message);
  });
});
