import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

export const CASE_GROUPS = ['numbers', 'booleans', 'times', 'texts', 'nulls', 'structures', 'keys'] as const;

/** A table as one engine writes it. */
export interface CaseTable {
  /** Columns of a CREATE TABLE; a column `at`, the record's time, is added where there is none. */
  readonly columns: string;
  /** Values of each row, or a query that gives them. */
  readonly rows: readonly string[] | string;
}

export interface CaseTables {
  /** Statements before both tables. */
  readonly setup?: readonly string[];
  readonly source: CaseTable;
  readonly downstream: CaseTable;
}

export interface CaseExpectation {
  readonly verdict: 'match' | 'differ' | 'undecided';
  /** Keys that agree; left out: one where the verdict is match, else none. */
  readonly matched?: number;
  /** Rules that made values equal, by field. */
  readonly forgiven?: Readonly<Record<string, string | readonly string[]>>;
  readonly diffs?: readonly {
    readonly key: string;
    readonly kind: string;
    readonly fields?: Readonly<Record<string, string>>;
  }[];
  /** How many records are mismatched, where they are too many to be named. */
  readonly mismatched?: number;
  /** Keys that cannot be judged, with a part of the reason. */
  readonly undecided?: readonly { readonly key: string; readonly reason: string }[];
}

export interface ValueCase {
  readonly id: string;
  readonly what: string;
  readonly key?: readonly string[];
  /** Rules as a config writes them. */
  readonly compare: Readonly<Record<string, string | Readonly<Record<string, unknown>>>>;
  readonly expect: CaseExpectation;
  /** The tables in the words of each engine that has the case. */
  readonly postgres?: CaseTables;
}

interface CaseFile {
  readonly cases: readonly ValueCase[];
  /** Why an id of the group makes no case here. */
  readonly notApplicable?: Readonly<Record<string, string>>;
}

export function readCaseFile(group: string): CaseFile {
  return readYaml(group) as CaseFile;
}

/** The ids that each group has to answer for. */
export function readCaseIds(): Readonly<Record<string, readonly string[]>> {
  const ids = readYaml('ids') as Record<string, string>;
  return Object.fromEntries(Object.entries(ids).map(([group, text]) => [group, text.split(' ')]));
}

function readYaml(name: string): unknown {
  return parse(readFileSync(new URL(`../cases/values/${name}.yaml`, import.meta.url), 'utf8'));
}
