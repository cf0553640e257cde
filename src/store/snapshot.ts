import type { Target } from '../config/schema.ts';
import type { StoreSnapshot, TargetSnapshot } from '../observe/metrics.ts';
import type { Db } from './database.ts';
import { gateStatus, maxSendsInWindow } from './gates.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** What the gauges show, for the configured targets. Reads only; by the store's clock. */
export async function storeSnapshot(
  db: Db,
  targets: Readonly<Record<string, Target>>,
): Promise<StoreSnapshot> {
  const [diffs, compensations, coverage] = await Promise.all([
    db.raw<{ rows: StoreSnapshot['diffs'] }>(
      `select reconciliation, kind, state, count(*)::int as count from diff group by 1, 2, 3 order by 1, 2, 3`,
    ),
    db.raw<{ rows: StoreSnapshot['compensations'] }>(
      `select target, state, count(*)::int as count from compensation group by 1, 2 order by 1, 2`,
    ),
    db.raw<{ rows: StoreSnapshot['coverage'] }>(
      `select reconciliation, extract(epoch from clock_timestamp() - covered_to)::float8 as "lagSeconds"
         from coverage order by 1`,
    ),
  ]);
  const gates = Object.entries(targets).map(([name, target]) => targetSnapshot(db, name, target));
  return {
    diffs: diffs.rows,
    compensations: compensations.rows,
    coverage: coverage.rows,
    targets: await Promise.all(gates),
  };
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
