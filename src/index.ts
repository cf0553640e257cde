/** The library: what a `module` action is written with, and the parts that can be used on their own. */
export type { ErrorRecord, Outcome } from './compensate/action.ts';
export {
  type ActionContext,
  type ActionFunction,
  type ActionResult,
  type DefinedAction,
  defineAction,
} from './compensate/define-action.ts';
export { FatalError, RetryableError, UnknownOutcomeError } from './compensate/errors.ts';
export {
  type Answer,
  type Classified,
  classifyAnswer,
  classifyError,
  type SendFacts,
} from './compensate/retry/classify.ts';
export { errorRecord } from './compensate/retry/error-chain.ts';
export { type NextTry, nextTry } from './compensate/retry/policy.ts';
export { parseRetryAfter } from './compensate/retry/retry-after.ts';
export { type Progress, stopReason } from './compensate/retry/stop.ts';
export { waitBefore } from './compensate/retry/wait.ts';
export type { Answers, ConfigInput, RetryPolicy, WaitPolicy } from './config/schema.ts';
export type { Instant } from './reconcile/instant.ts';
export type {
  DiffKind,
  FieldDifference,
  Finding,
  Key,
  SideRecord,
  Value,
  ValueType,
  Verdict,
  Window,
} from './reconcile/record.ts';
export type { ReadGate, Side, SideClock, SideDescription } from './reconcile/side.ts';
export { SideError } from './reconcile/side.ts';
