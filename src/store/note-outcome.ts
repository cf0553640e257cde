import type { Outcome } from '../compensate/action.ts';
import { outageAfter } from '../compensate/gate/outage.ts';
import { effectiveRate, type RateEvent, rateStep } from '../compensate/gate/rate.ts';
import type { Target } from '../config/schema.ts';
import type { Db } from './database.ts';
import { lesser, lockGate } from './gate-row.ts';
import { jsonColumn } from './json-column.ts';

export interface GateFacts {
  readonly breaker: string;
  readonly limit: number | null;
  readonly why: string;
}

/**
 * Feeds an attempt's outcome to the target's rate (rule 6.18) and to the clock of its outage (rule 6.12). Returns the
 * state of the gate at that moment.
 */
export async function noteOutcome(
  trx: Db,
  note: { gate: string; target: Target; outcome: Outcome },
): Promise<GateFacts> {
  const gate = await lockGate(trx, note.gate, 'send');
  // As for the grants: a process that works by another configuration obeys the active one too.
  const ceiling = lesser(note.target.watermark, gate.ceiling);
  const before = effectiveRate(gate.rate, ceiling, gate.override, gate.nowMs);
  const event = rateEvent(note.outcome, note.target);
  const rate = rateStep(gate.rate, event, note.target.breaker, gate.nowMs, { ceiling });
  const answer = event.type === 'target-failure' || event.type === 'throttled' ? 'failed' : 'good';
  await trx('gate')
    .where({ gate: note.gate, purpose: 'send' })
    .update({ rate: jsonColumn(rate), outage: jsonColumn(outageAfter(gate.outage, answer, gate.nowMs)) });
  return { breaker: rate.breaker.kind, limit: before.limit, why: before.reason };
}

function rateEvent(outcome: Outcome, target: Target): RateEvent {
  if (outcome.code === 'http-429') return { type: 'throttled', retryAfterMs: outcome.retryAfterMs };
  switch (outcome.class) {
    case 'accepted':
    case 'pending':
      return outcome.durationMs > target.breaker.slow ? { type: 'slow' } : { type: 'ok' };
    case 'fatal':
    case 'conflict':
      return { type: 'record-failure' };
    case 'retryable':
    case 'target-down':
    case 'unknown':
      return { type: 'target-failure', retryAfterMs: outcome.retryAfterMs };
  }
}
