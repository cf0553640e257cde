import type { CrossProblem } from '../cross-problem.ts';
import { minorDigits } from '../currency.ts';
import { suggest } from '../nearest.ts';
import type { Path } from '../path.ts';
import { isSet, misfits, RULE_OPTIONS, type RuleOption } from '../rule-options.ts';
import type { Reconciliation, Rule } from '../schema.ts';
import { mappedFields } from './side.ts';
import { checkZone } from './zone.ts';

/** They make the type text where no type is given. */
const TEXT_OPTIONS = ['padded', 'trim', 'ignoreCase', 'unicode', 'emptyIsNull', 'map'] as const;
/** What may be said of a part of the key. Nothing else changes which records belong together. */
const KEY_OPTIONS: readonly (keyof Rule)[] = ['zone', 'padded', 'trim', 'ignoreCase'];
const FOLDING = ['padded', 'trim', 'ignoreCase'] as const;

/** Compared fields stand on both sides, and each rule says something about its own type. */
export function checkCompare(path: Path, reconciliation: Reconciliation): readonly CrossProblem[] {
  return Object.entries(reconciliation.compare).flatMap(([field, rule]) => {
    const at = [...path, 'compare', field];
    return [
      ...checkMapped(path, at, field, reconciliation),
      ...checkOptions(at, rule),
      ...checkTyped(at, rule, reconciliation),
      ...checkKeyRule(path, at, field, reconciliation),
      ...checkMoney(path, at, rule, reconciliation),
    ];
  });
}

function checkMapped(path: Path, at: Path, field: string, reconciliation: Reconciliation): CrossProblem[] {
  // A part of the key may be compared too: it stands where the key stands.
  if (reconciliation.key.includes(field)) return [];
  const absent = (['source', 'downstream'] as const).flatMap((side) => {
    const mapped = mappedFields(reconciliation[side], reconciliation.compare);
    return mapped.includes(field) ? [] : [{ side, mapped }];
  });
  if (absent.length === 0) return [];
  const sides = absent.map(({ side }) => side);
  const all = [...new Set(absent.flatMap(({ mapped }) => mapped))];
  return [
    {
      path: at,
      predicate: `is no field of the ${sides.join(' or the ')}`,
      hint: `add ${field} to ${sides.map((side) => `${side}.fields`).join(' and ')} (${suggest(field, all, 'fields there')})`,
      reads: sides.flatMap((side) => [
        [...path, side, 'fields'],
        [...path, side, 'type'],
      ]),
    },
  ];
}

/** Options that do not fit the type, or not each other. */
function checkOptions(at: Path, rule: Rule): CrossProblem[] {
  const { type } = rule;
  const unfit =
    type === undefined
      ? []
      : misfits(rule, type).map(({ option, types }) => ({
          path: [...at, option],
          predicate: `says nothing about a field of type ${type}`,
          hint: `it is for ${types.join(', ')}`,
          reads: [[...at, 'type']],
        }));
  return [...checkZone([...at, 'zone'], rule.zone), ...unfit, ...checkRounding(at, rule)];
}

function checkRounding(at: Path, rule: Rule): CrossProblem[] {
  const problems: CrossProblem[] = [];
  if (rule.rounding !== undefined && rule.precision === undefined && rule.minorUnits === undefined)
    problems.push({
      path: [...at, 'rounding'],
      predicate: 'does not say what to round to',
      hint: 'add precision for a time, minorUnits for an amount, or leave rounding out',
      reads: [
        [...at, 'precision'],
        [...at, 'minorUnits'],
      ],
    });
  for (const option of ['tolerance', 'minorUnits'] as const) {
    if (rule.scale === undefined || rule[option] === undefined) continue;
    problems.push({
      path: [...at, 'scale'],
      predicate: `contradicts ${option}, which compares what the numbers are worth`,
      hint: 'keep one of them',
      reads: [[...at, option]],
    });
  }
  return problems;
}

function checkTyped(at: Path, rule: Rule, { source, downstream }: Reconciliation): CrossProblem[] {
  const http = source.type === 'http' || downstream.type === 'http';
  const isText = TEXT_OPTIONS.some((option) => isSet(rule, option));
  if (!http || rule.type !== undefined || rule.ignore || isText) return [];
  return [
    {
      path: at,
      predicate: 'has no type',
      hint: 'an HTTP answer does not say what a field is: write type: text, decimal, instant, …',
      reads: [[...at, 'type']],
    },
  ];
}

/** Keys pair by their bytes. A rule can fold texts that a database finds again, and nothing else. */
function checkKeyRule(path: Path, at: Path, field: string, reconciliation: Reconciliation): CrossProblem[] {
  const { key, compare, source, downstream } = reconciliation;
  const rule = compare[field];
  if (rule === undefined || !key.includes(field)) return [];
  const reads = [[...path, 'key']];
  const idle: (RuleOption | 'map')[] = [...RULE_OPTIONS, 'map'];
  const problems: CrossProblem[] = idle
    .filter((option) => isSet(rule, option) && !KEY_OPTIONS.includes(option))
    .map((option) => ({
      path: [...at, option],
      predicate: 'says nothing about a part of the key',
      hint: `records of two keys are never compared; for a key there are ${KEY_OPTIONS.join(', ')}`,
      reads,
    }));
  const http = (['source', 'downstream'] as const).filter((_, i) => [source, downstream][i]?.type === 'http');
  const folding = FOLDING.find((option) => isSet(rule, option));
  if (folding !== undefined && http.length > 0)
    problems.push({
      path: [...at, folding],
      predicate: `cannot be kept by the ${http.join(' and the ')}`,
      hint: 'an API finds a record by the very key it is asked for; leave the option out',
      reads: [...reads, ...http.map((side) => [...path, side, 'type'])],
    });
  return problems;
}

/** An amount in minor units, or a tolerance by currency, needs a currency that some side tells. */
function checkMoney(path: Path, at: Path, rule: Rule, reconciliation: Reconciliation): CrossProblem[] {
  const { currency, minorUnits, tolerance } = rule;
  const wanting = minorUnits !== undefined ? 'minorUnits' : 'tolerance';
  const wanted = minorUnits !== undefined || typeof tolerance === 'object';
  const reads = [
    [...at, 'minorUnits'],
    [...at, 'tolerance'],
    [...at, 'currency'],
  ];
  if (wanted && currency === undefined)
    return [
      {
        path: [...at, wanting],
        predicate: 'needs a currency',
        hint: 'add currency: USD, or currency: { field: NAME } with the field that holds the code',
        reads,
      },
    ];
  if (currency === undefined) return [];
  const place = [...at, 'currency'];
  if (!wanted)
    return [
      {
        path: place,
        predicate: 'changes nothing',
        hint: 'it is for minorUnits, or for a tolerance that is given by currency',
        reads,
      },
    ];
  if (typeof currency === 'object') return checkCurrencyField(path, place, currency.field, reconciliation);
  if (minorUnits === undefined || minorDigits(currency) !== undefined) return [];
  return [
    {
      path: place,
      predicate: 'has no minor unit in ISO 4217',
      hint: 'write an active code such as USD, JPY or KWD',
      showsValue: true,
      reads,
    },
  ];
}

function checkCurrencyField(
  path: Path,
  place: Path,
  field: string,
  reconciliation: Reconciliation,
): CrossProblem[] {
  const { source, downstream, compare } = reconciliation;
  const mapped = [...mappedFields(source, compare), ...mappedFields(downstream, compare)];
  const all = [...new Set([...mapped, ...Object.keys(compare)])];
  if (all.includes(field)) return [];
  return [
    {
      path: [...place, 'field'],
      predicate: 'is no field of either side',
      hint: suggest(field, all, 'fields there'),
      showsValue: true,
      reads: [
        [...path, 'source', 'fields'],
        [...path, 'downstream', 'fields'],
      ],
    },
  ];
}
