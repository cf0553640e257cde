import { type CompareContext, compareKey } from './compare-records.ts';
import { type Key, keyText, type SideRecord, type Verdict } from './record.ts';

/** All records of a page that share a key, by the text of the key. */
export function groupByKey(records: readonly SideRecord[]): Map<string, SideRecord[]> {
  const groups = new Map<string, SideRecord[]>();
  for (const record of records) {
    const text = keyText(record.key);
    const group = groups.get(text);
    if (group === undefined) groups.set(text, [record]);
    else group.push(record);
  }
  return groups;
}

/** One verdict for each key, from everything that both sides hold for these keys. Keyed by `keyText`. */
export function comparePage(
  keys: readonly Key[],
  source: readonly SideRecord[],
  downstream: readonly SideRecord[],
  context: CompareContext,
): Map<string, Verdict> {
  const left = groupByKey(source);
  const right = groupByKey(downstream);
  const verdicts = new Map<string, Verdict>();
  for (const key of keys) {
    const text = keyText(key);
    verdicts.set(text, compareKey(key, left.get(text) ?? [], right.get(text) ?? [], context));
  }
  return verdicts;
}
