import type { Outcome } from '../compensate/action.ts';
import type { Db } from './database.ts';
import { jsonColumn } from './json-column.ts';

export interface NewAttempt {
  readonly compensationId: string;
  readonly number: number;
  readonly target: string;
  readonly worker: string;
  /** From now until the slot starts, on the database clock. */
  readonly slotInMs: number;
  readonly deadlineInMs: number;
}

/** Committed before the send (rule 6.8), in the transaction that grants the slot. */
export async function insertAttempt(db: Db, attempt: NewAttempt): Promise<void> {
  await db('attempt').insert({
    compensation_id: attempt.compensationId,
    number: attempt.number,
    target: attempt.target,
    worker: attempt.worker,
    slot_at: db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [attempt.slotInMs]),
    deadline: db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [attempt.deadlineInMs]),
  });
}

/** The slot passed before the call could start: surely not sent, and not counted. */
export async function dropAttempt(db: Db, compensationId: string, number: number): Promise<void> {
  await db('attempt')
    .where({ compensation_id: compensationId, number })
    .whereNull('ended_at')
    .update({
      ended_at: db.raw('clock_timestamp()'),
      outcome: 'not-sent',
      error_code: 'slot-missed',
      counted: false,
    });
}

export interface AttemptEnd {
  readonly compensationId: string;
  readonly number: number;
  readonly outcome: Outcome;
  readonly counted: boolean;
  /** The state of the system then: breaker, rate, in flight, backlog, version. */
  readonly system: unknown;
  readonly startedMsAgo: number;
}

/** What the attempt was, kept with its request, answer, stack and the state of the system (DESIGN section 9). */
export async function endAttempt(db: Db, end: AttemptEnd): Promise<void> {
  await db('attempt')
    .where({ compensation_id: end.compensationId, number: end.number })
    .update({
      started_at: db.raw(`clock_timestamp() - ? * interval '1 millisecond'`, [end.startedMsAgo]),
      ended_at: db.raw('clock_timestamp()'),
      outcome: end.outcome.class,
      error_code: end.outcome.code,
      counted: end.counted,
      request: jsonColumn(end.outcome.request),
      answer: jsonColumn(end.outcome.answer),
      error: jsonColumn(end.outcome.error),
      system: jsonColumn(end.system),
      duration_ms: end.outcome.durationMs,
    });
}

/** Quick failures of the target itself since the last attempt that reached it. */
export async function targetFailuresInARow(db: Db, compensationId: string): Promise<number> {
  const { rows } = await db.raw<{ rows: { failures: number }[] }>(
    `select count(*)::int as failures from attempt a
      where a.compensation_id = :id and a.outcome = 'target-down'
        and a.number > coalesce((select max(b.number) from attempt b
             where b.compensation_id = :id and b.outcome is not null and b.outcome not in ('target-down', 'not-sent')), 0)`,
    { id: compensationId },
  );
  return rows[0]?.failures ?? 0;
}

/** How the target answered an attempt; null while nobody knows. */
export async function attemptOutcome(db: Db, compensationId: string, number: number): Promise<string | null> {
  const row = await db('attempt').where({ compensation_id: compensationId, number }).first('outcome');
  return row?.outcome ?? null;
}
