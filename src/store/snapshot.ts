import type { Target } from '../config/schema.ts';
import type { StoreSnapshot, TargetSnapshot } from '../observe/metrics.ts';
import { millisOf } from '../reconcile/instant.ts';
import { readProven } from './coverage.ts';
import type { Db } from './database.ts';
import { gateStatus, maxSendsInWindow } from './gates.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/**
 * What the gauges show, for the configured targets. Reads only; by the store's clock. What grows with the backlog is
 * counted in indexes alone (migration 0005).
 */
export async function storeSnapshot(
  db: Db,
  targets: Readonly<Record<string, Target>>,
): Promise<StoreSnapshot> {
  const [diffs, compensations, coverage] = await Promise.all([
    db.raw<{ rows: StoreSnapshot['diffs'] }>(
      `select reconciliation, kind, count(*)::int as count,
              extract(epoch from clock_timestamp() - min(first_seen))::float8 as "oldestSeconds"
         from diff where state in ('open', 'failed') group by 1, 2 order by 1, 2`,
    ),
    db.raw<{ rows: StoreSnapshot['compensations'] }>(
      `select target, state, count(*)::int as count from compensation where ended_at is null
        group by 1, 2 order by 1, 2`,
    ),
    coverageSnapshot(db),
  ]);
  const gates = Object.entries(targets).map(([name, target]) => targetSnapshot(db, name, target));
  return {
    diffs: diffs.rows,
    compensations: compensations.rows,
    coverage,
    targets: await Promise.all(gates),
  };
}

async function coverageSnapshot(db: Db): Promise<StoreSnapshot['coverage']> {
  const { rows } = await db.raw<{ rows: { reconciliation: string; lagSeconds: number; nowMs: number }[] }>(
    `select reconciliation, extract(epoch from clock_timestamp() - covered_to)::float8 as "lagSeconds",
            (extract(epoch from clock_timestamp()) * 1000)::float8 as "nowMs"
       from coverage order by 1`,
  );
  return Promise.all(
    rows.map(async ({ reconciliation, lagSeconds, nowMs }) => {
      const proven = await readProven(db, reconciliation);
      const provenLagSeconds = proven === null ? null : (nowMs - millisOf(proven)) / 1000;
      return { reconciliation, lagSeconds, provenLagSeconds };
    }),
  );
}

async function targetSnapshot(db: Db, name: string, target: Target): Promise<TargetSnapshot> {
  const gate = await gateStatus(db, target.upstream ?? name, target);
  return {
    target: name,
    watermark: smaller(gate.ceiling, gate.override),
    limit: gate.limit,
    breaker: gate.breaker,
    held: gate.held !== null,
    maxSends: await maxSendsInWindow(db, name, HOUR_MS, MINUTE_MS),
  };
}

/** Null is unlimited. */
function smaller(a: number | null, b: number | null): number | null {
  if (a === null) return b;
  return b === null ? a : Math.min(a, b);
}
