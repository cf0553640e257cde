import { type Db, only } from '../../../src/store/database.ts';

type Values = Record<string, unknown>;

async function insert(db: Db, table: string, values: Values): Promise<string> {
  const rows: { id: string }[] = await db(table).insert(values).returning('id');
  return only(rows).id;
}

/** Rows as the flow would write them, with `values` on top. Each gives the new row's id. */
export async function insertRun(db: Db, reconciliation: string, values: Values = {}): Promise<string> {
  return insert(db, 'run', {
    reconciliation,
    trigger: 'adhoc',
    mode: 'compensate',
    moves_coverage: false,
    window_from: '2026-11-30T10:00:00Z',
    window_to: '2026-11-30T11:00:00Z',
    ...values,
  });
}

export async function insertSuspect(
  db: Db,
  reconciliation: string,
  runId: string,
  values: Values = {},
): Promise<string> {
  return insert(db, 'suspect', {
    run_id: runId,
    reconciliation,
    business_key: '["A-1"]',
    kind: 'missing',
    due_at: db.raw('clock_timestamp()'),
    ...values,
  });
}

export async function insertDiff(db: Db, reconciliation: string, values: Values = {}): Promise<string> {
  return insert(db, 'diff', {
    reconciliation,
    business_key: '["A-1"]',
    kind: 'missing',
    trace_id: 'trace-1',
    next_look: db.raw(`clock_timestamp() + interval '1 hour'`),
    ...values,
  });
}

let serial = 0;

export async function insertCompensation(
  db: Db,
  reconciliation: string,
  diffId: string,
  values: Values = {},
): Promise<string> {
  serial += 1;
  return insert(db, 'compensation', {
    diff_id: diffId,
    reconciliation,
    repair: 'missing',
    side: 'downstream',
    target: 'warehouse',
    order_scope: reconciliation,
    business_key: '["A-1"]',
    operation: 'create',
    idempotency_key: `${reconciliation}:${serial}`,
    fingerprint: 'f',
    payload: JSON.stringify({ type: 'module', module: 'm', input: null }),
    trace_id: 'trace-1',
    ...values,
  });
}

export async function insertAttempt(
  db: Db,
  compensationId: string,
  number: number,
  values: Values = {},
): Promise<void> {
  await db('attempt').insert({
    compensation_id: compensationId,
    number,
    target: 'warehouse',
    worker: 'w1',
    slot_at: db.raw('clock_timestamp()'),
    deadline: db.raw(`clock_timestamp() + interval '5 seconds'`),
    ...values,
  });
}
