import type { Eta } from '../jobs/eta.ts';
import type { RunDetail } from '../store/list-runs.ts';

export interface Rate {
  readonly target: string;
  readonly lastMinute: number;
  /** Null is unlimited. */
  readonly limit: number | null;
}

/** Where runs stand, in one line: found, sent, verified, the rate against its ceiling, and when they are done. */
export function progressLine(runs: readonly RunDetail[], rates: readonly Rate[], eta: Eta): string {
  const states = runs.map(({ reconciliation, phase, counts: c, compensations: r }) => {
    if (phase === 'reading') return `${reconciliation}: reading, ${c.source} read`;
    const found = c.missing + c.extra + c.mismatched + c.duplicate;
    if (phase !== 'done' && phase !== 'held') return `${reconciliation}: ${phase}, ${found} found`;
    const handed = r.escalated > 0 ? `, ${r.escalated} for a person` : '';
    const healed = r.healed > 0 ? `, ${r.healed} healed` : '';
    return `${reconciliation}: ${found} found, ${r.sent} sent, ${r.verified} of ${r.planned} verified${healed}${handed}`;
  });
  const paces = rates.map(
    ({ target, lastMinute, limit }) => `${target} ${lastMinute}/${limit ?? 'unlimited'} a minute`,
  );
  const waits = rates.length > 0 ? [eta.text] : [];
  return [...states, ...paces, ...waits].join(' | ');
}
