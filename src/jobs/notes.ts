import type { AttemptSummary } from '../observe/attempt-summary.ts';
import type { Logger } from '../observe/logger.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Delivery } from './deliver-alerts.ts';
import type { EndedAttempt, EndedByLook } from './run-compensation.ts';

/** Tells log and metrics how an attempt ended. */
export function noteAttempt(ended: EndedAttempt, summary: AttemptSummary, metrics: Metrics): void {
  const { compensation, outcome, result } = ended;
  const { target } = compensation;
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

/** Tells log and metrics how a look ended a compensation; one that went to a person is told like a spent retry. */
export function noteEnded(ended: EndedByLook, summary: AttemptSummary, metrics: Metrics): void {
  const { compensation, result } = ended;
  const { target } = compensation;
  if (result === 'verified' || result === 'healed') {
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
