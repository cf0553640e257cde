import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Target } from '../../config/schema.ts';
import type { Outcome, Payload, SendContext, Sender } from '../action.ts';
import { type ActionContext, type DefinedAction, isDefinedAction } from '../define-action.ts';
import { type Classified, classifyError } from '../retry/classify.ts';
import { errorRecord } from '../retry/error-chain.ts';
import { DeadlinePassed, untilDeadline } from './deadline.ts';
import { KnownFailure } from './known-failure.ts';
import { codeOf, known, outcome, storable } from './outcome.ts';

/**
 * Calls a function of the team's own. The path of its file is relative to the directory of the config. A file that
 * cannot be loaded is a fault of the target, not of the record: its compensations wait (`target-down`).
 */
export function createModuleSender(options: {
  readonly targetName: string;
  readonly target: Target;
  readonly baseDirectory: string;
}): Sender {
  async function send(payload: Payload, context: SendContext): Promise<Outcome> {
    const startedAt = performance.now();
    const request =
      payload.type === 'module'
        ? { module: payload.module, input: payload.input, idempotencyKey: context.idempotencyKey }
        : null;
    let called = false;
    try {
      if (payload.type !== 'module')
        throw new KnownFailure('fatal', 'wrong-payload', `a module cannot send a "${payload.type}" payload`);
      const file = resolve(options.baseDirectory, payload.module);
      const action = await untilDeadline(context.signal, () => loadAction(file));
      const result: unknown = await untilDeadline(context.signal, async () => {
        called = true;
        return await action.run(actionContext(payload.input, context));
      });
      const said = readResult(action.name, result);
      return outcome(said.classified, { request, answer: storable(said.answer), startedAt });
    } catch (error) {
      return outcome(classifyFailure(error, called), { request, error: errorRecord(error), startedAt });
    }
  }

  return {
    // Nothing is connected here, and the module is loaded once, by the first send.
    warm: async () => undefined,
    ready: () => true,
    send,
    close: async () => undefined,
  };
}

async function loadAction(file: string): Promise<DefinedAction> {
  const loaded: unknown = await import(/* @vite-ignore */ pathToFileURL(file).href).catch(
    (error: unknown) => {
      const hint =
        codeOf(error) === 'ERR_UNKNOWN_FILE_EXTENSION'
          ? `this Node (${process.version}) loads no such file; give JavaScript (.js, .mjs), or run Node 22.18 or later for .ts`
          : 'look at the cause';
      throw new KnownFailure('target-down', 'module-not-loadable', `cannot load ${file}: ${hint}`, {
        cause: error,
      });
    },
  );
  const exported =
    typeof loaded === 'object' && loaded !== null && 'default' in loaded ? loaded.default : null;
  if (isDefinedAction(exported)) return exported;
  throw new KnownFailure(
    'target-down',
    'module-without-action',
    `the default export of ${file} was not made by defineAction; write export default defineAction(...)`,
  );
}

function actionContext(input: unknown, context: SendContext): ActionContext {
  const { idempotencyKey, signal, diff, traceId, traceparent, attempt } = context;
  return {
    input,
    idempotencyKey,
    signal,
    diff,
    traceId,
    traceparent,
    attempt,
    // An abandoned function must not go on calling.
    slot: async () => {
      signal.throwIfAborted();
      await context.slot();
      signal.throwIfAborted();
    },
  };
}

function readResult(
  name: string,
  result: unknown,
): { readonly classified: Classified; readonly answer: unknown } {
  if (typeof result === 'object' && result !== null && 'outcome' in result) {
    const answer = 'answer' in result ? result.answer : null;
    if (result.outcome === 'done') return { classified: known('accepted', 'done'), answer };
    if (result.outcome === 'pending') return { classified: known('pending', 'pending'), answer };
  }
  throw new KnownFailure(
    'unknown',
    'no-outcome',
    `${name} did not say how it ended; return { outcome: 'done' } or { outcome: 'pending' }. ` +
      'It may have acted, so only a look can tell',
  );
}

function classifyFailure(error: unknown, called: boolean): Classified {
  if (error instanceof KnownFailure) return known(error.class, error.code);
  if (error instanceof DeadlinePassed)
    return called ? known('unknown', 'timeout-after-send') : known('target-down', 'timeout-before-send');
  return classifyError(error, { sent: called });
}
