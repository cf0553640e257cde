import type { Rule } from '../config/schema.ts';
import { digestRecords } from './digest.ts';
import { isUsableKey } from './key.ts';
import {
  type DiffKind,
  displayKey,
  type FieldDifference,
  type Finding,
  type Forgiven,
  type Key,
  keyText,
  type SideRecord,
  type Verdict,
} from './record.ts';
import { areSame, type Beside, compareValues } from './value/compare.ts';

export interface CompareContext {
  /** Rule per compared field. Both sides map every field that is named here. */
  readonly rules: Readonly<Record<string, Rule>>;
  /** The store's key for digests. */
  readonly digestKey: string;
  /** False leaves out the digests of records that match: most records do, and a bulk read does not store them. */
  readonly digestMatches?: boolean;
}

/** Names of the fields that decide, in a fixed order. Ignored ones are read and stored, but do not. */
function decidingFields(rules: Readonly<Record<string, Rule>>): readonly string[] {
  const compared = Object.entries(rules).filter(([, rule]) => !rule.ignore);
  const currencies = compared.flatMap(([, { currency }]) =>
    typeof currency === 'object' ? [currency.field] : [],
  );
  return [...new Set([...compared.map(([field]) => field), ...currencies])].sort();
}

/**
 * What all records of one key say, on both sides. More than one record on a side is a `duplicate` with counts, never
 * last-wins. Records whose stored keys differ and that only the rule on a key field makes one are undecided: which of
 * them is meant cannot be known. A field that really differs decides; only without one does an unreadable cell make it `undecided`.
 */
export function compareKey(
  key: Key,
  source: readonly SideRecord[],
  downstream: readonly SideRecord[],
  context: CompareContext,
): Verdict {
  if (!isUsableKey(key)) {
    const reason = unusableReason(source.length, downstream.length);
    return { verdict: 'undecided', key, reason, finding: null };
  }
  const collision = collisionOf('source', source) ?? collisionOf('downstream', downstream);
  if (collision !== undefined) return { verdict: 'undecided', key, reason: collision, finding: null };
  if (source.length > 1 || downstream.length > 1) {
    return differs('duplicate', key, source, downstream, [], context);
  }
  const [a] = source;
  const [b] = downstream;
  if (a === undefined && b === undefined) return { verdict: 'match', sourceDigest: null };
  if (a === undefined) return differs('extra', key, source, downstream, [], context);
  if (b === undefined) return differs('missing', key, source, downstream, [], context);
  const { differences, undecided, forgiven } = compareFields(a, b, context.rules);
  if (differences.length > 0) return differs('mismatched', key, source, downstream, differences, context);
  if (undecided.length > 0) return { verdict: 'undecided', key, reason: undecided.join('; '), finding: null };
  const digest = context.digestMatches === false ? null : digestOf(source, context);
  return { verdict: 'match', sourceDigest: digest, ...(forgiven.length > 0 ? { forgiven } : {}) };
}

function collisionOf(side: string, records: readonly SideRecord[]): string | undefined {
  if (records.length < 2) return undefined;
  const keys = new Map(records.map(({ key, storedKey = key }) => [keyText(storedKey), storedKey]));
  if (keys.size < 2) return undefined;
  const shown = [...keys.values()].map((key) => JSON.stringify(displayKey(key))).sort();
  return `the rule on the key makes one of ${shown.length} keys of the ${side}: ${shown.join(', ')}`;
}

function compareFields(source: SideRecord, downstream: SideRecord, rules: CompareContext['rules']) {
  const differences: FieldDifference[] = [];
  const undecided: string[] = [];
  const forgiven: Forgiven[] = [];
  for (const [field, rule] of Object.entries(rules)) {
    if (rule.ignore) continue;
    const a = readValue(source, field);
    const b = readValue(downstream, field);
    if (areSame(a, b, rule)) continue;
    const comparison = compareValues(a, b, rule, besideOf(rule, source, downstream));
    if ('undecided' in comparison) undecided.push(`${field}: ${comparison.undecided}`);
    else if (!comparison.equal) {
      differences.push({ field, source: a, downstream: b, rule: comparison.rule });
    } else if (comparison.forgiven) forgiven.push({ field, rule: comparison.rule });
  }
  return { differences, undecided, forgiven };
}

function besideOf({ currency }: Rule, source: SideRecord, downstream: SideRecord): Beside {
  if (currency === undefined) return {};
  return {
    currency: typeof currency === 'string' ? currency : currencyIn(currency.field, source, downstream),
  };
}

/** Amounts of two currencies have no common measure, so what a side says of its currency must not be contradicted. */
function currencyIn(field: string, ...records: readonly SideRecord[]): Beside['currency'] {
  const said = records.flatMap(({ fields: { [field]: value } }) =>
    value?.type === 'text' ? [value.text.trim().toUpperCase()] : [],
  );
  const [currency, ...others] = new Set(said);
  if (currency === undefined) return { undecided: `no side says the currency in ${field}` };
  if (others.length > 0) return { undecided: `amounts in ${currency} and in ${others.join(', ')}` };
  return currency;
}

/** A field that is compared but was not read must never pass for equal. */
function readValue(record: SideRecord, field: string) {
  const value = record.fields[field];
  if (value === undefined) throw new TypeError(`the compared field ${field} was not read`);
  return value;
}

function differs(
  kind: DiffKind,
  key: Key,
  source: readonly SideRecord[],
  downstream: readonly SideRecord[],
  fields: readonly FieldDifference[],
  context: CompareContext,
): Verdict {
  const finding: Finding = {
    key,
    kind,
    fields,
    source: source[0] ?? null,
    downstream: downstream[0] ?? null,
    sourceCount: source.length,
    downstreamCount: downstream.length,
    sourceDigest: digestOf(source, context),
    downstreamDigest: digestOf(downstream, context),
  };
  return { verdict: 'differs', finding };
}

function digestOf(records: readonly SideRecord[], context: CompareContext): string | null {
  return digestRecords(records, decidingFields(context.rules), context.digestKey);
}

/** Why records without a usable key say nothing, with their number on each side. */
export function unusableReason(atSource: number, downstream: number): string {
  const where = [
    ...(atSource > 0 ? [`${atSource} at the source`] : []),
    ...(downstream > 0 ? [`${downstream} downstream`] : []),
  ];
  const counted = where.length > 0 ? `: ${where.join(', ')}` : '';
  return `records with a null, unreadable or empty key cannot be paired${counted}`;
}
