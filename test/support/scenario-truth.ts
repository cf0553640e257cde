import { expect } from 'vitest';
import { RECONCILIATIONS, type ReconciliationName, type Scenario } from './scenario.ts';

/** What became of one reconciliation, told by the downstream's own tables and by the store. */
interface Truth {
  /** Orders with exactly one effect. */
  readonly once: readonly string[];
  /** Orders with more than one effect. */
  readonly doubled: readonly string[];
  /** Orders that the downstream does not hold as the source does. */
  readonly different: readonly string[];
  /** Diffs by order: their state, and why a person has them. */
  readonly diffs: Readonly<Record<string, string>>;
  readonly coverage: string | null;
  readonly run: unknown;
  /** Compensations that have not ended, by state. */
  readonly open: readonly string[];
}

const SCHEMAS = { payments: 'gateway', parcels: 'warehouse' } as const;

/** Reads what happened. Nothing here asks trueup's code. */
async function readTruth(scenario: Scenario, name: ReconciliationName): Promise<Truth> {
  const { systems, store } = scenario;
  const schema = SCHEMAS[name];
  const effects = await systems.query<{ order_no: string; effects: number }>(
    `select order_no, count(*)::int as effects from ${schema}.effect group by order_no order by order_no`,
  );
  const different = await systems.query<{ order_no: string }>(
    `select coalesce(s.order_no, d.order_no) as order_no
       from shop.${name} s full join ${schema}.payment d using (order_no)
      where (s.status, s.amount) is distinct from (d.status, d.amount) order by 1`,
  );
  const diffs = await store.raw<{ rows: { order_no: string; state: string; reason: string | null }[] }>(
    `select (d.business_key::jsonb)->>0 as order_no, d.state,
            (select c.escalation from compensation c where c.diff_id = d.id order by c.id desc limit 1) as reason
       from diff d where d.reconciliation = ? order by 1`,
    [name],
  );
  const runs = await store.raw<{ rows: unknown[] }>(
    `select result, verdict, counts->'source' as source, counts->'missing' as missing,
            counts->'mismatched' as mismatched, counts->'undecided' as undecided
       from run where reconciliation = ? order by id`,
    [name],
  );
  const coverage = await store('coverage').where({ reconciliation: name }).first('covered_to');
  const open = await store('compensation')
    .where({ reconciliation: name })
    .whereNull('ended_at')
    .orderBy('state')
    .pluck('state');
  const of = (wanted: (count: number) => boolean) =>
    effects.rows.filter((row) => wanted(row.effects)).map((row) => row.order_no);
  return {
    once: of((count) => count === 1),
    doubled: of((count) => count > 1),
    different: different.rows.map((row) => row.order_no),
    diffs: Object.fromEntries(diffs.rows.map((row) => [row.order_no, endOf(row)])),
    coverage: coverage?.covered_to ?? null,
    run: runs.rows,
    open,
  };
}

/** A repair that turned out to be done already and one that was seen to take are both a repair. */
function endOf({ state, reason }: { state: string; reason: string | null }): string {
  if (state === 'verified' || state === 'healed') return 'repaired';
  return reason === null ? state : `${state}: ${reason}`;
}

/** What has to be true after all is done, whatever was killed on the way. */
function plantedTruth(scenario: Scenario, name: ReconciliationName): Truth {
  const orders = [...scenario.orders[name]].sort((a, b) => (a.orderNo < b.orderNo ? -1 : 1));
  const differing = orders.filter(({ role }) => role !== 'equal');
  const refused = differing.filter(({ fault }) => fault === 'refuse').map(({ orderNo }) => orderNo);
  return {
    once: differing.map(({ orderNo }) => orderNo).filter((orderNo) => !refused.includes(orderNo)),
    doubled: [],
    different: refused,
    diffs: Object.fromEntries(
      differing.map(({ orderNo }) => [orderNo, refused.includes(orderNo) ? 'open: refused' : 'repaired']),
    ),
    coverage: scenario.window.to,
    run: [
      {
        result: 'complete',
        verdict: 'differ',
        source: orders.length,
        missing: differing.filter(({ role }) => role === 'missing').length,
        mismatched: differing.filter(({ role }) => role === 'mismatched').length,
        undecided: 0,
      },
    ],
    open: [],
  };
}

/** Asserts on the downstream's own tables, and on what the store says about them. */
export async function expectPlanted(scenario: Scenario): Promise<void> {
  for (const name of RECONCILIATIONS)
    expect(await readTruth(scenario, name), name).toEqual(plantedTruth(scenario, name));
}

/**
 * Whatever was killed: the coverage stands where the stored chunks end, and each planted difference before it has its
 * suspect, so nothing behind the coverage is forgotten.
 */
export async function expectCoverageBehindSuspects({ store, orders, window }: Scenario): Promise<void> {
  for (const name of RECONCILIATIONS) {
    const { covered, readTo, suspects } = await readProgress(store, name);
    expect(covered, `coverage of ${name}`).toBe(readTo ?? window.from);
    const planted = orders[name]
      .filter(({ role, at }) => role !== 'equal' && covered !== null && at < covered)
      .map(({ orderNo }) => JSON.stringify([orderNo]));
    expect(suspects, `suspects of ${name}`).toEqual(planted.sort());
  }
}

/** In one snapshot: the server may still be at the last statement of a client that was killed. */
function readProgress(store: Scenario['store'], name: ReconciliationName) {
  return store.transaction(
    async (trx) => {
      const run = await trx('run').where({ reconciliation: name }).first('id', 'read_to');
      const coverage = await trx('coverage').where({ reconciliation: name }).first('covered_to');
      const suspects: string[] = await trx('suspect').where({ run_id: run.id }).pluck('business_key');
      const covered: string | null = coverage?.covered_to ?? null;
      return { covered, readTo: run.read_to, suspects: suspects.sort() };
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  );
}
