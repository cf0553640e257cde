import { addMillis, type Instant } from '../../src/reconcile/instant.ts';
import type { Window } from '../../src/reconcile/record.ts';
import type { Fault } from './scenario-target.ts';

export interface ScenarioOrder {
  readonly orderNo: string;
  readonly at: Instant;
  readonly role: 'missing' | 'mismatched' | 'equal';
  readonly fault: Fault | undefined;
}

export interface ScenarioSize {
  readonly missing: number;
  readonly mismatched: number;
  readonly equal: number;
}

/** The brunt of the crash suite: 40 orders a reconciliation. */
export const FULL: ScenarioSize = { missing: 25, mismatched: 3, equal: 12 };
/** For many repetitions. */
export const SHORT: ScenarioSize = { missing: 12, mismatched: 2, equal: 6 };

/**
 * Orders at even distances over the window, roles mixed so that each chunk holds some of each. The first missing ones
 * meet the faults, in order.
 */
export function planOrders(
  prefix: string,
  window: Window,
  spanMs: number,
  size: ScenarioSize,
  faults: readonly Fault[],
): ScenarioOrder[] {
  const roles: Pick<ScenarioOrder, 'role' | 'fault'>[] = [
    ...Array.from({ length: size.missing }, (_, index) => ({
      role: 'missing' as const,
      fault: faults[index],
    })),
    ...Array.from({ length: size.mismatched }, () => ({ role: 'mismatched' as const, fault: undefined })),
    ...Array.from({ length: size.equal }, () => ({ role: 'equal' as const, fault: undefined })),
  ];
  const count = roles.length;
  return roles.map((role, index) => {
    // 7 shares no factor with the sizes used, so every place is taken once.
    const place = (index * 7) % count;
    return {
      ...role,
      orderNo: `${prefix}-${String(place).padStart(3, '0')}`,
      at: addMillis(window.from, Math.floor(((place + 0.5) * spanMs) / count)),
    };
  });
}
