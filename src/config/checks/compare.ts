import type { CrossProblem } from '../cross-problem.ts';
import { suggest } from '../nearest.ts';
import type { Path } from '../path.ts';
import type { Reconciliation, Rule, TypeName } from '../schema.ts';
import { mappedFields } from './side.ts';
import { checkZone } from './zone.ts';

const EXACT: readonly TypeName[] = ['decimal', 'integer', 'float'];
const TEXT_OPTIONS = ['trim', 'ignoreCase', 'unicode', 'map'] as const;

/** Compared fields stand on both sides, and each rule says something about its own type. */
export function checkCompare(path: Path, reconciliation: Reconciliation): readonly CrossProblem[] {
  const http = reconciliation.source.type === 'http' || reconciliation.downstream.type === 'http';
  return Object.entries(reconciliation.compare).flatMap(([field, rule]) => {
    const at = [...path, 'compare', field];
    return [...checkMapped(path, at, field, reconciliation), ...checkRule(at, rule, http)];
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

function checkRule(at: Path, rule: Rule, http: boolean): CrossProblem[] {
  const needs = (option: keyof Rule, types: readonly TypeName[]): CrossProblem[] => {
    if (rule[option] === undefined || rule.type === undefined || types.includes(rule.type)) return [];
    return [
      {
        path: [...at, option],
        predicate: `says nothing about a field of type ${rule.type}`,
        hint: `it is for ${types.join(', ')}`,
        reads: [[...at, 'type']],
      },
    ];
  };
  const problems = [
    ...checkZone([...at, 'zone'], rule.zone),
    ...needs('tolerance', EXACT),
    ...needs('precision', ['instant']),
    ...needs('within', ['instant']),
    ...needs('zone', ['instant', 'date']),
  ];
  const isText = TEXT_OPTIONS.some((option) => rule[option] !== undefined && rule[option] !== false);
  if (http && rule.type === undefined && !rule.ignore && !isText)
    problems.push({
      path: at,
      predicate: 'has no type',
      hint: 'an HTTP answer does not say what a field is: write type: text, decimal, instant, …',
      reads: [[...at, 'type']],
    });
  return problems;
}
