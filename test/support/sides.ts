import { ruleSchema, sideSchema } from '../../src/config/schema.ts';
import { type ReadResult, readWindow } from '../../src/reconcile/read-window.ts';
import type { SideRecord, Window } from '../../src/reconcile/record.ts';
import type { Side } from '../../src/reconcile/side.ts';
import { createSide } from '../../src/reconcile/sides/create.ts';
import { NOON } from './records.ts';

export interface SideOptions {
  /** Names of the key's parts. */
  readonly names?: readonly string[];
  readonly rules?: Readonly<Record<string, unknown>>;
  readonly [option: string]: unknown;
}

const { signal } = new AbortController();

/** The source as its configuration describes it, with a time column `t` unless said otherwise. */
export function openSide({ names = ['k'], rules = {}, ...config }: SideOptions): Side {
  return createSide(sideSchema.parse({ time: 't', ...config }), {
    name: 'source',
    keyNames: names,
    rules: rulesOf(rules),
    targets: {},
    readGate: { take: () => Promise.resolve() },
  });
}

/** All records of a window, the hour after noon unless said otherwise. */
export async function scanAll(side: Side, window: Window = NOON): Promise<SideRecord[]> {
  const records: SideRecord[] = [];
  for await (const page of side.scan(window, signal)) records.push(...page);
  return records;
}

export function compareSides(
  source: Side,
  downstream: Side,
  rules: Readonly<Record<string, unknown>> = {},
  plan: 'merge' | 'lookup' = 'merge',
): Promise<ReadResult> {
  return readWindow({
    window: NOON,
    source,
    downstream,
    plan,
    rules: rulesOf(rules),
    digestKey: 'k',
    signal,
  });
}

function rulesOf(rules: Readonly<Record<string, unknown>>) {
  return Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, ruleSchema.parse(rule)]));
}
