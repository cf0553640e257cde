import type { Action, Reconciliation, Repair } from '../config/schema.ts';
import { TrueupError } from '../error.ts';
import { addMillis, type Instant } from '../reconcile/instant.ts';
import type { Finding, SideRecord, Value } from '../reconcile/record.ts';
import type { Payload } from './action.ts';
import { fingerprint, IdempotencyKeyError, idempotencyKey, withRevision } from './idempotency-key.ts';
import { compileNamedSql } from './named-sql.ts';
import {
  fillHeaders,
  fillJson,
  fillOptional,
  fillPath,
  fillQuery,
  fillText,
  type Placeholders,
  recordPlaceholders,
  TemplateError,
  textOf,
} from './template.ts';

export type CompensationPlan =
  /** The diff is only reported; `why` is a sentence for people. */
  | { readonly plan: 'report'; readonly why: string }
  | {
      readonly plan: 'compensate';
      /** Which repair of the config: `missing`, `extra`, `mismatched`, or `mismatched.0` where there are several. */
      readonly repair: string;
      readonly side: Repair['side'];
      readonly target: string;
      readonly operation: string;
      readonly orderScope: string;
      /** Without its revision. */
      readonly idempotencyKey: string;
      readonly payload: Payload;
      /** Of the payload at revision 0 and without trace id: equal while the repair is the same (rule 6.3). */
      readonly fingerprint: string;
      readonly businessDate: string | null;
    };

export interface PlanInput {
  readonly finding: Finding;
  readonly reconciliation: { readonly name: string; readonly config: Reconciliation };
  readonly now: Instant;
  /** A person asked: `maxAge` does not apply (rule 5.12 is about replay by itself). Left out: false. */
  readonly byPerson?: boolean;
  /** Part of `{idempotencyKey}` in the payload. Plan again with it when `nextRevision` gives one above 0. */
  readonly revision?: number;
  /** For `{traceId}` in the payload; left out: the record's own, from the config's `traceId` field. */
  readonly traceId?: string;
}

/** The repair of one diff, complete and as data; or why it is only reported. Never throws for a record or a template that does not fit it. */
export function planCompensation(input: PlanInput): CompensationPlan {
  const { finding, reconciliation, now } = input;
  const chosen = chooseRepair(finding, reconciliation.config);
  if ('why' in chosen) return { plan: 'report', why: chosen.why };
  const oldest = addMillis(now, -reconciliation.config.maxAge);
  const time = finding.source?.time ?? finding.downstream?.time ?? null;
  if (time !== null && time < oldest && input.byPerson !== true)
    return { plan: 'report', why: 'the record is older than maxAge, and only a person may replay it' };
  if (deletes(chosen.repair.action) && !chosen.repair.allowDelete)
    return { plan: 'report', why: 'the action deletes, and the repair does not say allowDelete: true' };
  try {
    return planRepair(input, chosen.name, chosen.repair);
  } catch (error) {
    // A template, a key or a statement that does not fit this record or at all: all of these explain themselves.
    if (!(error instanceof TrueupError)) throw error;
    const hint = error.hint === undefined ? '' : `; ${error.hint}`;
    return { plan: 'report', why: `cannot be planned: ${error.message}${hint}` };
  }
}

/** The repair that `CompensationPlan.repair` names, or undefined when the config no longer has it. */
export function repairByName(config: Reconciliation, name: string): Repair | undefined {
  return repairsOf(config).find((each) => each.name === name)?.repair;
}

/** True when the configuration repairs diffs of this kind, rather than only reporting them. */
export function repairsKind(config: Reconciliation, kind: Finding['kind']): boolean {
  return repairsOf(config).some((each) => each.kind === kind);
}

// ------------------------------------------------------------------------------------------------------ choice

interface NamedRepair {
  readonly name: string;
  readonly kind: Finding['kind'];
  readonly repair: Repair;
}

function repairsOf(config: Reconciliation): readonly NamedRepair[] {
  return (['missing', 'mismatched', 'extra'] as const).flatMap((kind) => {
    const repair = config.repair[kind];
    if (repair === 'report') return [];
    if (Array.isArray(repair))
      return repair.map((each, index) => ({ name: `${kind}.${index}`, kind, repair: each }));
    return [{ name: kind, kind, repair }];
  });
}

function chooseRepair(finding: Finding, config: Reconciliation): NamedRepair | { readonly why: string } {
  const ofKind = repairsOf(config).filter(({ kind }) => kind === finding.kind);
  if (ofKind.length === 0) return { why: `diffs of kind ${finding.kind} are only reported` };
  const chosen = ofKind.find(({ repair }) => applies(repair.when, finding));
  return chosen ?? { why: `no repair of ${finding.kind} has a "when" that holds for this record` };
}

/** Every named field must hold one of the listed canonical texts, on each side that is named. */
function applies(when: Repair['when'], finding: Finding): boolean {
  return Object.entries(when ?? {}).every(
    ([field, { source, downstream }]) =>
      holds(source, finding.source, field) && holds(downstream, finding.downstream, field),
  );
}

function holds(values: readonly string[] | undefined, record: SideRecord | null, field: string): boolean {
  if (values === undefined) return true;
  const value = record?.fields[field];
  if (value === undefined || value.type === 'undecided') return false;
  const text = textOf(value);
  return text !== null && values.includes(text);
}

function deletes(action: Action): boolean {
  if (action.type === 'http') return action.method === 'DELETE';
  return action.type === 'sql' && /\b(delete\s+from|truncate)\b/i.test(action.statement);
}

// ---------------------------------------------------------------------------------------------------- contents

function planRepair(input: PlanInput, name: string, repair: Repair): CompensationPlan {
  const { finding } = input;
  const { config, name: reconciliation } = input.reconciliation;
  const operation = repair.operation ?? finding.kind;
  const businessDate = businessDateOf(finding, config);
  const key = idempotencyKey({
    template: repair.idempotency.template,
    from: repair.idempotency.from,
    reconciliation,
    key: finding.key,
    keyNames: config.key,
    operation,
    businessDate,
    source: textsOf(finding.source),
    downstream: textsOf(finding.downstream),
  });
  const payloadFor = (sentKey: string, traceId: string | null) =>
    payloadOf(
      repair.action,
      new Map([
        ...recordPlaceholders(finding, config.key),
        ['idempotencyKey', sentKey],
        ['businessDate', businessDate],
        ['reconciliation', reconciliation],
        ['operation', operation],
        ['traceId', traceId],
      ]),
    );
  return {
    plan: 'compensate',
    repair: name,
    side: repair.side,
    target: repair.target,
    operation,
    orderScope: config.orderScope ?? reconciliation,
    idempotencyKey: key,
    payload: payloadFor(withRevision(key, input.revision ?? 0), input.traceId ?? traceIdOf(finding, config)),
    // The trace id is another one for each diff; the repair is the same.
    fingerprint: fingerprint(payloadFor(key, 'trace')),
    businessDate,
  };
}

function traceIdOf(finding: Finding, config: Reconciliation): string | null {
  const value = config.traceId === undefined ? undefined : finding.source?.fields[config.traceId];
  return value === undefined || value.type === 'undecided' ? null : textOf(value);
}

function textsOf(record: SideRecord | null): Record<string, string | null> {
  const texts: Record<string, string | null> = {};
  for (const [field, value] of Object.entries(record?.fields ?? {})) {
    if (value.type !== 'undecided') texts[field] = textOf(value);
  }
  return texts;
}

/** `YYYY-MM-DD` of the configured field, else of the record's time; a moment gives its date in UTC, always the same. */
function businessDateOf(finding: Finding, config: Reconciliation): string | null {
  const record = finding.source ?? finding.downstream;
  if (config.businessDate === undefined) return record?.time?.slice(0, 10) ?? null;
  const value: Value | undefined = record?.fields[config.businessDate];
  if (value === undefined || value.type === 'undecided') {
    throw new IdempotencyKeyError(
      `the business date field ${config.businessDate} cannot be read from the record`,
      'name a mapped field in businessDate',
    );
  }
  return value.type === 'instant' ? value.text.slice(0, 10) : textOf(value);
}

function payloadOf(action: Action, known: Placeholders): Payload {
  switch (action.type) {
    case 'http': {
      const path = fillPath(action.path, known);
      const query = fillQuery(action.query, known);
      return {
        type: 'http',
        method: action.method,
        path: query === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`,
        headers: fillHeaders(action.headers, known),
        body: action.body === undefined ? null : bodyOf(action.body, known),
      };
    }
    case 'sql': {
      const { text, names } = compileNamedSql(action.statement);
      return {
        type: 'sql',
        statement: text,
        values: names.map((name) => bound(name, action.bind, known)),
        expectRows: action.expectRows ?? 1,
      };
    }
    case 'module':
      // `|number` would make a JavaScript number of an exact text (rule 5.6); a module gets the text.
      return { type: 'module', module: action.module, input: fillData(action.input ?? null, known) };
  }
}

/** A body that is one string is a text of its own (XML, a form): it is sent as it is. Everything else is JSON. */
function bodyOf(body: unknown, known: Placeholders): string | null {
  return typeof body === 'string' ? fillOptional(body, known) : fillJson(body, known);
}

function bound(name: string, bind: Readonly<Record<string, string>>, known: Placeholders): string | null {
  const template = bind[name];
  if (template === undefined)
    throw new TemplateError(`the statement uses :${name}, which bind does not give`);
  return fillOptional(template, known);
}

function fillData(template: unknown, known: Placeholders): unknown {
  if (typeof template === 'string') {
    if (template.includes('|number}'))
      throw new TemplateError(
        `"${template}" is for JSON bodies; a module gets exact texts and converts them itself`,
      );
    return fillOptional(template, known);
  }
  if (Array.isArray(template)) return template.map((item) => fillData(item, known));
  if (typeof template !== 'object' || template === null) return template;
  return Object.fromEntries(
    Object.entries(template).map(([name, value]) => [fillText(name, known), fillData(value, known)]),
  );
}
