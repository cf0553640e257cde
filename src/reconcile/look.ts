import { comparePage } from './compare-page.ts';
import type { CompareContext } from './compare-records.ts';
import { isUsableKey } from './key.ts';
import type { Key, Verdict } from './record.ts';
import type { Side } from './side.ts';

/** The compare rules and the store's key for digests. */
export type LookContext = Pick<CompareContext, 'rules' | 'digestKey'>;

/**
 * A fresh look at these keys on both sides, used by the recheck, before a send and after it. One verdict per key, by
 * `keyText`. Throws what a side throws: a look that failed says nothing about any key.
 */
export async function lookBoth(
  keys: readonly Key[],
  source: Side,
  downstream: Side,
  context: LookContext,
  signal: AbortSignal,
): Promise<Map<string, Verdict>> {
  const usable = keys.filter(isUsableKey);
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  try {
    const [left, right] = await Promise.all([
      source.lookup(usable, either),
      downstream.lookup(usable, either),
    ]);
    return comparePage(keys, left, right, context);
  } catch (error) {
    failed.abort(error);
    throw error;
  }
}
