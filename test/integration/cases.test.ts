import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RULE_OPTIONS } from '../../src/config/rule-options.ts';
import { type Rule, ruleSchema, sideSchema } from '../../src/config/schema.ts';
import { type ReadResult, readWindow } from '../../src/reconcile/read-window.ts';
import { displayKey, VALUE_TYPES } from '../../src/reconcile/record.ts';
import { createSide } from '../../src/reconcile/sides/create.ts';
import { type CaseDatabase, type CaseEngine, postgresEngine } from '../support/case-engine.ts';
import { NOON } from '../support/records.ts';
import {
  CASE_GROUPS,
  type CaseExpectation,
  readCaseFile,
  readCaseIds,
  type ValueCase,
} from '../support/value-cases.ts';

/** Source and downstream. A further engine runs every case that has tables in its words. */
const PAIRS: readonly (readonly [CaseEngine, CaseEngine])[] = [[postgresEngine, postgresEngine]];

type RawRules = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

const files = CASE_GROUPS.map((group) => [group, readCaseFile(group)] as const);
const allCases = files.flatMap(([, { cases }]) => cases);

const ruled = (valueCase: ValueCase): RawRules =>
  Object.fromEntries(
    Object.entries(valueCase.compare).map(([field, rule]) => [
      field,
      rule === 'ignore' ? { ignore: true } : typeof rule === 'string' ? { type: rule } : rule,
    ]),
  );

describe('the corpus of value cases', () => {
  it.each(files)('has a case, or a reason for none, for each id of the group %s', (group, file) => {
    const told = [
      ...file.cases.map(({ id }) => id.split('.')[0] ?? ''),
      ...Object.keys(file.notApplicable ?? {}),
    ];
    expect([...new Set(told)].toSorted()).toEqual([...(readCaseIds()[group] ?? [])].toSorted());
    for (const reason of Object.values(file.notApplicable ?? {})) expect(reason.length).toBeGreaterThan(20);
  });

  it('gives each case an id of its own and a sentence', () => {
    expect(new Set(allCases.map(({ id }) => id)).size).toBe(allCases.length);
    for (const { id, what } of allCases) expect(what, id).toMatch(/^[A-Z].{10,}\.$/);
  });

  it('uses each option and each type of a rule', () => {
    const rules = allCases.flatMap((valueCase) => Object.values(ruled(valueCase)));
    const unused = [...RULE_OPTIONS, 'map', 'ignore'].filter(
      (option) => !rules.some((rule) => option in rule),
    );
    expect(unused).toEqual([]);
    expect(VALUE_TYPES.filter((type) => !rules.some((rule) => rule['type'] === type))).toEqual([]);
  });
});

describe.each(PAIRS)('value cases from $name to $name', (from, to) => {
  const cases = allCases.filter((each) => from.tablesOf(each) && to.tablesOf(each));
  const { signal } = new AbortController();
  let source: CaseDatabase;
  let downstream: CaseDatabase;

  beforeAll(async () => {
    [source, downstream] = [await from.open(), await to.open()];
    for (const each of cases) {
      const [here, there] = [from.tablesOf(each), to.tablesOf(each)];
      if (here === undefined || there === undefined) continue;
      await source.run(here.setup ?? []);
      await downstream.run(there.setup ?? []);
      await source.createTable(tableOf(each), here.source);
      await downstream.createTable(tableOf(each), there.downstream);
    }
  }, 120_000);
  afterAll(async () => {
    await source?.close();
    await downstream?.close();
  });

  async function read(valueCase: ValueCase, plan: 'merge' | 'lookup', raw = ruled(valueCase)) {
    const rules: Record<string, Rule> = Object.fromEntries(
      Object.entries(raw).map(([field, rule]) => [field, ruleSchema.parse(rule)]),
    );
    const open = (name: string, database: CaseDatabase) =>
      createSide(sideSchema.parse(database.sideConfig(tableOf(valueCase))), {
        name,
        keyNames: valueCase.key ?? ['k'],
        rules,
        targets: {},
        readGate: { take: () => Promise.resolve() },
      });
    const sides = { source: open('source', source), downstream: open('downstream', downstream) };
    try {
      return await readWindow({ window: NOON, ...sides, plan, rules, digestKey: 'k', signal });
    } finally {
      await sides.source.close();
      await sides.downstream.close();
    }
  }

  /** True when the case does not end as it should under these rules. */
  async function isRed(valueCase: ValueCase, raw: RawRules): Promise<boolean> {
    const result = await read(valueCase, 'merge', raw).catch((error: unknown) => error as Error);
    return result instanceof Error || JSON.stringify(seen(result, valueCase.expect)) !== wanted(valueCase);
  }

  const wanted = ({ expect: expected }: ValueCase) => JSON.stringify(inFull(expected));

  it.each(cases.flatMap((each) => (['merge', 'lookup'] as const).map((plan) => ({ ...each, plan }))))(
    '$id by $plan: $what',
    async ({ plan, ...valueCase }) => {
      const result = await read(valueCase, plan);
      expect(seen(result, valueCase.expect)).toEqual(inFull(valueCase.expect));
    },
  );

  it.each([...RULE_OPTIONS, 'map', 'ignore', ...VALUE_TYPES])(
    'would fail in at least one case without %s',
    async (word) => {
      const isType = (VALUE_TYPES as readonly string[]).includes(word);
      const without = (rule: RawRules[string]) => {
        const { [isType ? 'type' : word]: dropped, ...rest } = rule;
        return isType && dropped !== word ? rule : rest;
      };
      const touched = cases.flatMap((each) => {
        const rules = Object.entries(ruled(each));
        const changed = rules.map(([field, rule]) => [field, without(rule)] as const);
        const same = JSON.stringify(changed) === JSON.stringify(rules);
        return same ? [] : [{ each, changed: Object.fromEntries(changed) }];
      });
      let red: string | undefined;
      for (const { each, changed } of touched) {
        if (red === undefined && (await isRed(each, changed))) red = each.id;
      }
      expect(red).toBeDefined();
    },
  );

  it('end in a match that a rule has to make in at least a third', async () => {
    const made: string[] = [];
    for (const each of cases.filter(({ expect: { verdict } }) => verdict === 'match')) {
      const bare = Object.fromEntries(Object.keys(each.compare).map((field) => [field, {}]));
      if (await isRed(each, bare)) made.push(each.id);
    }
    expect(made.length * 3).toBeGreaterThanOrEqual(cases.length);
  }, 120_000);
});

function tableOf({ id }: ValueCase): string {
  return `case_${id.toLowerCase().replace(/\W/g, '_')}`;
}

/** What a case expects, with what it leaves out. */
function inFull(expected: CaseExpectation) {
  const { verdict, matched = verdict === 'match' ? 1 : 0, forgiven = {}, diffs, mismatched } = expected;
  return {
    verdict,
    matched,
    forgiven: Object.entries(forgiven)
      .flatMap(([field, rules]) => [rules].flat().map((rule) => `${field}: ${rule}`))
      .toSorted(),
    diffs: mismatched ?? (diffs ?? []).map((diff) => lineOf(diff.key, diff.kind, diff.fields)).toSorted(),
    undecided: (expected.undecided ?? []).map(({ key, reason }) => `${key}: ${reason}`),
  };
}

/** What a reading saw, in the same words; reasons are shown by the part that is expected of them. */
function seen(result: ReadResult, expected: CaseExpectation) {
  const { suspects, undecided, counts, forgiven } = result;
  const verdict = suspects.length > 0 ? 'differ' : undecided.length > 0 ? 'undecided' : 'match';
  const lines = suspects.map((finding) =>
    lineOf(
      displayKey(finding.key),
      finding.kind,
      Object.fromEntries(finding.fields.map(({ field, rule }) => [field, rule])),
    ),
  );
  return {
    verdict,
    matched: counts.matched,
    forgiven: forgiven.map(({ field, rule }) => `${field}: ${rule}`).toSorted(),
    diffs: expected.mismatched === undefined ? lines.toSorted() : counts.mismatched,
    undecided: undecided.map(({ key, reason }) => {
      const part = expected.undecided?.find((each) => reason.includes(each.reason))?.reason;
      return `${displayKey(key)}: ${part ?? reason}`;
    }),
  };
}

function lineOf(key: string, kind: string, fields: Readonly<Record<string, string>> = {}): string {
  const named = Object.entries(fields).map(([field, rule]) => `${field} by ${rule}`);
  return [`${key} ${kind}`, ...named.toSorted()].join('; ');
}
