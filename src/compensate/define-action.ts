import type { Finding } from '../reconcile/record.ts';

/** What a `module` action is called with. */
export interface ActionContext<Input = unknown> {
  /** `input` of the config, with the record's values put in. */
  readonly input: Input;
  /** Give it to whatever the action calls: the same key means the same effect. The same for every attempt. */
  readonly idempotencyKey: string;
  /** Aborts at the attempt's deadline. An action that runs on is abandoned and its outcome is unknown. */
  readonly signal: AbortSignal;
  /** The difference that is being repaired. */
  readonly diff: Finding;
  /** Call and await before each outside call after the first: the first one's slot is granted already (rule 6.16). */
  readonly slot: () => Promise<void>;
  readonly traceId: string;
  /** W3C trace context, for the header of the same name. */
  readonly traceparent: string;
  /** 1 for the first try. */
  readonly attempt: number;
}

/** `done`: applied. `pending`: accepted, not final; trueup looks until it is visible and does not send again. */
export interface ActionResult {
  readonly outcome: 'done' | 'pending';
  /** Kept with the attempt, for people. */
  readonly answer?: unknown;
}

export type ActionFunction<Input = unknown> = (
  context: ActionContext<Input>,
) => ActionResult | Promise<ActionResult>;

/** Shared by all copies of this package, so that a module that brings its own copy is recognised. */
const BRAND = Symbol.for('trueup.action');

export interface DefinedAction<Input = unknown> {
  readonly name: string;
  readonly run: ActionFunction<Input>;
  readonly [BRAND]: true;
}

/**
 * Makes the default export of a module action:
 *
 *     export default defineAction(async ({ input, idempotencyKey, signal }) => {
 *       await api.createOrder(input, { idempotencyKey, signal });
 *       return { outcome: 'done' };
 *     });
 *
 * To say what a failure means, throw `RetryableError` (surely nothing happened), `FatalError` (repeating cannot help) or
 * `UnknownOutcomeError` (only a look can tell). Other errors are judged by their codes, as those of something that was
 * called already: a reset or a timeout is unknown. What nothing is known about is tried again, after a look.
 * Throws `TypeError` when there is no function.
 */
export function defineAction<Input = unknown>(
  action: ActionFunction<Input> | { readonly name: string; readonly run: ActionFunction<Input> },
): DefinedAction<Input> {
  const run = typeof action === 'function' ? action : action?.run;
  if (typeof run !== 'function')
    throw new TypeError('defineAction takes a function, or { name, run } with a function as run');
  return Object.freeze({ name: action.name || 'action', run, [BRAND]: true as const });
}

/** True for what `defineAction` made, also in another copy of this package. */
export function isDefinedAction(value: unknown): value is DefinedAction {
  return typeof value === 'object' && value !== null && BRAND in value && 'run' in value;
}
