import type { AttemptSummary } from '../observe/attempt-summary.ts';
import type { Logger } from '../observe/logger.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Compensation } from '../store/compensations.ts';
import type { Delivery } from './deliver-alerts.ts';
import type { EndedAttempt, EndedByLook } from './run-compensation.ts';

/** Who is told how the work goes. */
export interface Listeners {
  readonly logger: Logger;
  readonly summary: AttemptSummary;
  readonly metrics: Metrics;
}

/**
 * Tells log and metrics how an attempt ended. One that was accepted at once has a debug line of its own, so that the
 * record's trace id is in the log for every stage; the others are told by the summary.
 */
export function noteAttempt(ended: EndedAttempt, { logger, summary, metrics }: Listeners): void {
  const { compensation, outcome, result } = ended;
  const { target } = compensation;
  if (result === 'accepted') {
    const { attempt, gateWaitMs } = ended;
    const { class: answer, durationMs } = outcome;
    logger.debug(
      { event: 'compensation.sent', ...idsOf(compensation), attempt, answer, gateWaitMs, durationMs },
      'sent and accepted',
    );
    if (compensation.attempts > 0) metrics.retrySucceeded(target, sinceFirstSend(ended) / 1000);
  }
  metrics.gateWaited(target, 'send', ended.gateWaitMs / 1000);
  metrics.attemptEnded(target, { class: outcome.class, status: statusOf(ended), number: ended.attempt });
  if (result === 'escalate') metrics.compensationEnded(target, 'escalated', compensation.attempts + 1);
  summary.record({
    target,
    compensation: compensation.id,
    attempt: ended.attempt,
    traceId: compensation.traceId,
    result: logResultOf(ended),
    code: outcome.code,
    err: result === 'escalate' && outcome.error !== null ? outcome.error : undefined,
  });
}

/** The row was read when its job began; the wait for the gate and the call came after. */
function sinceFirstSend({ compensation, gateWaitMs, outcome }: EndedAttempt): number {
  return (compensation.firstSentMsAgo ?? 0) + gateWaitMs + outcome.durationMs;
}

/** Of a record on its way, in every line about it. */
function idsOf(compensation: Compensation) {
  const { traceId, id, diffId, runId, reconciliation, target } = compensation;
  return { traceId, compensation: id, diff: diffId, run: runId, reconciliation, target };
}

/** Tells log and metrics how a look ended a compensation; one that went to a person is told like a spent retry. */
export function noteEnded(ended: EndedByLook, { logger, summary, metrics }: Listeners): void {
  const { compensation, result } = ended;
  const { target } = compensation;
  if (result === 'verified' || result === 'healed') {
    logger.debug({ event: `compensation.${result}`, ...idsOf(compensation) }, `ended: ${result}`);
    metrics.compensationEnded(target, result, compensation.attempts);
    return;
  }
  metrics.compensationEnded(target, 'escalated', compensation.attempts);
  summary.record({
    target,
    compensation: compensation.id,
    attempt: compensation.attemptNumber,
    traceId: compensation.traceId,
    result: 'exhausted',
    code: result,
  });
}

function statusOf({
  result,
  compensation,
}: EndedAttempt): 'success' | 'success_after_retry' | 'fail' | 'abort' {
  if (result === 'accepted') return compensation.attempts > 0 ? 'success_after_retry' : 'success';
  return result === 'escalate' ? 'abort' : 'fail';
}

function logResultOf({ result, outcome }: EndedAttempt): 'success' | 'retry' | 'exhausted' | 'fatal' {
  if (result === 'accepted') return 'success';
  if (result !== 'escalate') return 'retry';
  return outcome.class === 'fatal' ? 'fatal' : 'exhausted';
}

/** Tells log and metrics how a delivery to a chat channel ended. */
export function noteDelivery(delivery: Delivery, logger: Logger, metrics: Metrics): void {
  metrics.alertSent(delivery.channel, delivery.result);
  const { channel, result, messages, reason } = delivery;
  const fact = { event: 'alert.delivery', channel, result, messages, reason };
  if (result === 'sent') logger.info(fact, `alert sent to ${channel}`);
  else logger.warn(fact, `alert not delivered to ${channel}`);
}
