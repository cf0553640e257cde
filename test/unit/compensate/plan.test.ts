import { describe, expect, it } from 'vitest';
import { planCompensation, repairByName } from '../../../src/compensate/plan.ts';
import { configSchema, type Reconciliation } from '../../../src/config/schema.ts';
import { type Instant, parseInstant } from '../../../src/reconcile/instant.ts';
import type { DiffKind, Finding, SideRecord, Value } from '../../../src/reconcile/record.ts';

function instant(text: string): Instant {
  const read = parseInstant(text);
  if (read === undefined) throw new Error(text);
  return read;
}

const NOW = instant('2026-11-30T12:00:00Z');
const post = { type: 'http', path: '/orders/{key}', body: { amount: '{source.amount|number}' } };
const toGateway = { target: 'gateway', action: post };

function config(repair: unknown, more: object = {}): Reconciliation {
  const side = { type: 'postgres', url: 'postgres://r@db/x', table: 't' };
  const parsed = configSchema.parse({
    version: 1,
    reconciliations: {
      orders: { source: side, downstream: side, key: ['order_no'], compare: {}, repair, ...more },
    },
  });
  const orders = parsed.reconciliations['orders'];
  if (orders === undefined) throw new Error('no config');
  return orders;
}

const text = (value: string): Value => ({ type: 'text', text: value });
function record(fields: Record<string, Value>, time = '2026-11-29T10:00:00Z'): SideRecord {
  return { key: ['A-1'], time: instant(time), fields };
}
function finding(kind: DiffKind, source: SideRecord | null, downstream: SideRecord | null): Finding {
  const common = { key: ['A-1'], fields: [], sourceDigest: null, downstreamDigest: null };
  return {
    ...common,
    kind,
    source,
    downstream,
    sourceCount: source ? 1 : 0,
    downstreamCount: downstream ? 1 : 0,
  };
}
const SOURCE = record({ amount: { type: 'decimal', text: '10.50' }, status: text('PENDING') });
const MISSING = finding('missing', SOURCE, null);
type PlanInput = Parameters<typeof planCompensation>[0];
const plan = (repair: unknown, what: Finding, more: object = {}, rest: Partial<PlanInput> = {}) =>
  planCompensation({
    finding: what,
    reconciliation: { name: 'orders', config: config(repair, more) },
    now: NOW,
    ...rest,
  });

describe('planCompensation', () => {
  it('plans the repair of a missing record, complete', () => {
    expect(plan({ missing: toGateway }, MISSING)).toEqual({
      plan: 'compensate',
      repair: 'missing',
      side: 'downstream',
      target: 'gateway',
      operation: 'missing',
      orderScope: 'orders',
      idempotencyKey: 'orders:A-1:missing:2026-11-29',
      payload: { type: 'http', method: 'POST', path: '/orders/A-1', headers: {}, body: '{"amount":10.50}' },
      fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
      businessDate: '2026-11-29',
    });
  });

  it('reports what has no repair: extra and duplicate unless told otherwise', () => {
    for (const kind of ['missing', 'mismatched', 'extra', 'duplicate'] as const)
      expect(plan({}, finding(kind, SOURCE, SOURCE))).toMatchObject({ plan: 'report' });
    const cancel = { target: 'gateway', action: { type: 'http', path: '/orders/{key}/cancel' } };
    expect(plan({ extra: cancel }, finding('extra', null, SOURCE))).toMatchObject({ repair: 'extra' });
  });

  it('chooses the first mismatched repair whose `when` holds on both sides', () => {
    const paid = {
      ...toGateway,
      when: { status: { source: ['PENDING'], downstream: ['SUCCESS', 'PAID'] } },
      side: 'source',
    };
    const repairs = { mismatched: [paid, { ...toGateway, operation: 'correct' }] };
    const withStatus = (status: Value) => finding('mismatched', SOURCE, record({ status }));
    expect(plan(repairs, withStatus(text('PAID')))).toMatchObject({ repair: 'mismatched.0', side: 'source' });
    expect(plan(repairs, withStatus(text('OPEN')))).toMatchObject({
      repair: 'mismatched.1',
      operation: 'correct',
    });
    expect(plan({ mismatched: [paid] }, withStatus({ type: 'null' }))).toMatchObject({ plan: 'report' });
    expect(repairByName(config(repairs), 'mismatched.1')?.operation).toBe('correct');
    expect(repairByName(config(repairs), 'mismatched.2')).toBeUndefined();
  });

  it('reports a record older than maxAge, unless a person asks (rule 5.12)', () => {
    const at = (time: string) => finding('missing', { ...SOURCE, time: instant(time) }, null);
    expect(plan({ missing: toGateway }, at('2026-11-23T12:00:00Z'))).toMatchObject({ plan: 'compensate' });
    expect(plan({ missing: toGateway }, at('2026-11-23T11:59:59Z'))).toMatchObject({ plan: 'report' });
    expect(plan({ missing: toGateway }, at('2020-01-01T00:00:00Z'), {}, { byPerson: true })).toMatchObject({
      plan: 'compensate',
    });
  });

  it('does not delete without allowDelete', () => {
    const deletes = { target: 'gateway', action: { type: 'http', method: 'DELETE', path: '/orders/{key}' } };
    const sql = {
      target: 'db',
      action: { type: 'sql', statement: 'delete from o where id = :k', bind: { k: '{key}' } },
    };
    for (const repair of [deletes, sql]) {
      expect(plan({ extra: repair }, finding('extra', null, SOURCE))).toMatchObject({ plan: 'report' });
      expect(plan({ extra: { ...repair, allowDelete: true } }, finding('extra', null, SOURCE))).toMatchObject(
        { plan: 'compensate' },
      );
    }
  });

  it('reports with a reason what its templates cannot say', () => {
    const wrong = { target: 'gateway', action: { type: 'http', path: '/orders/{source.id}' } };
    expect(plan({ missing: wrong }, MISSING)).toMatchObject({
      plan: 'report',
      why: expect.stringContaining('{source.id}'),
    });
    const from = { ...toGateway, idempotency: { from: 'request_id' } };
    expect(plan({ missing: from }, MISSING)).toMatchObject({
      plan: 'report',
      why: expect.stringContaining('source.request_id'),
    });
    const sql = { target: 'db', action: { type: 'sql', statement: 'update a set b = 1; drop table c' } };
    expect(plan({ missing: sql }, MISSING)).toMatchObject({
      plan: 'report',
      why: expect.stringContaining('more than one statement'),
    });
  });

  it('gives the payload the revised key, and keeps the fingerprint over revisions and traces', () => {
    const body = { key: '{idempotencyKey}', trace: '{traceId}' };
    const repair = { missing: { ...toGateway, action: { ...post, body } } };
    const first = plan(repair, MISSING, {}, { traceId: 't1' });
    const second = plan(repair, MISSING, {}, { traceId: 't2', revision: 2 });
    expect(second).toMatchObject({
      idempotencyKey: 'orders:A-1:missing:2026-11-29',
      payload: { body: '{"key":"orders:A-1:missing:2026-11-29:r2","trace":"t2"}' },
    });
    const print = (each: typeof first) => (each.plan === 'compensate' ? each.fingerprint : undefined);
    expect(print(first)).toBe(print(second));
  });

  it('takes the business date from its field', () => {
    const dated = (value: Value) =>
      plan({ missing: toGateway }, finding('missing', record({ ...SOURCE.fields, paid: value }), null), {
        businessDate: 'paid',
      });
    expect(dated({ type: 'date', text: '2026-11-01' })).toMatchObject({ businessDate: '2026-11-01' });
    expect(dated({ type: 'instant', text: '2026-11-02T23:30:00.000000Z' })).toMatchObject({
      businessDate: '2026-11-02',
    });
    expect(dated({ type: 'undecided', text: '?', reason: 'ambiguous' })).toMatchObject({ plan: 'report' });
  });

  it('binds the names of a statement in order', () => {
    const statement = "update orders set status = :s, note = ':no' where no = :k and status <> :s";
    const repair = {
      target: 'db',
      side: 'source',
      action: { type: 'sql', statement, bind: { s: 'PAID', k: '{key}' } },
    };
    expect(plan({ missing: repair }, MISSING)).toMatchObject({
      payload: {
        type: 'sql',
        statement: "update orders set status = $1, note = ':no' where no = $2 and status <> $3",
        values: ['PAID', 'A-1', 'PAID'],
        expectRows: 1,
      },
    });
  });

  it('gives a module exact texts', () => {
    const action = {
      type: 'module',
      module: './m.js',
      input: { amount: '{source.amount}', list: ['{key}', 7] },
    };
    expect(plan({ missing: { target: 'gateway', action } }, MISSING)).toMatchObject({
      payload: { type: 'module', module: './m.js', input: { amount: '10.50', list: ['A-1', 7] } },
    });
    const number = { ...action, input: '{source.amount|number}' };
    expect(plan({ missing: { target: 'gateway', action: number } }, MISSING)).toMatchObject({
      plan: 'report',
    });
  });
});
