import type { Catalogue, CatalogueColumn, CatalogueTable } from './catalogue.ts';
import {
  type ColumnPair,
  guessFields,
  guessKeys,
  hasZone,
  isBookkeeping,
  pairColumns,
  plainName,
  timeColumns,
} from './propose-columns.ts';
import type { TypeName } from './schema.ts';

export interface ProposedSide {
  /** `public.orders` */
  readonly table: string;
  /** Key name -> column. */
  readonly key: Readonly<Record<string, string>>;
  /** The column that selects the window; null when the table has no timestamp. */
  readonly time: string | null;
  /** Field name -> column. */
  readonly fields: Readonly<Record<string, string>>;
}

export interface ProposedPair {
  /** A name for the reconciliation, from the source's table. */
  readonly name: string;
  readonly key: readonly string[];
  readonly source: ProposedSide;
  readonly downstream: ProposedSide;
  readonly compare: Readonly<Record<string, TypeName>>;
  /** What a person should look at before trusting this, in sentences. */
  readonly warnings: readonly string[];
}

interface Candidate {
  readonly source: CatalogueTable;
  readonly downstream: CatalogueTable;
  readonly columns: readonly ColumnPair[];
  readonly key: readonly ColumnPair[];
  readonly score: number;
}

/** Tables that a person already chose, as `orders` or `public.orders`. */
export interface Wanted {
  readonly sourceTable?: string;
  readonly downstreamTable?: string;
}

/**
 * The two tables that most probably hold the same records, and how to compare them; `undefined` when no two tables
 * share a unique key. Of two tables that were named and share no name of a column, types are matched. A source without
 * a time is proposed only when there is no other. Only a proposal: what it cannot know is in `warnings`.
 */
export function proposePair(
  source: Catalogue,
  downstream: Catalogue,
  wanted: Wanted = {},
): ProposedPair | undefined {
  const bothNamed = wanted.sourceTable !== undefined && wanted.downstreamTable !== undefined;
  const candidates = choose(source, wanted.sourceTable).flatMap((one) =>
    choose(downstream, wanted.downstreamTable).flatMap(
      (other) => candidate(one, other) ?? (bothNamed ? guessedCandidate(one, other) : undefined) ?? [],
    ),
  );
  const timed = candidates.filter(({ source }) => timeColumns(source).length > 0);
  const [best] = (timed.length > 0 ? timed : candidates).sort((a, b) => b.score - a.score);
  return best === undefined ? undefined : proposal(best);
}

/** Tables of a database by the names that a person can give. */
export function tableNames(catalogue: Catalogue, wanted?: string): readonly string[] {
  return choose(catalogue, wanted).map(fullName);
}

/** A dot or a quote inside a name would read as something else in `table:`. */
function choose(catalogue: Catalogue, wanted: string | undefined): readonly CatalogueTable[] {
  return catalogue.tables
    .filter((table) => !/[."]/.test(table.schema + table.name))
    .filter((table) => wanted === undefined || wanted === table.name || wanted === fullName(table));
}

function candidate(source: CatalogueTable, downstream: CatalogueTable): Candidate | undefined {
  const columns = pairColumns(source, downstream);
  const [key] = sharedKeys(source, downstream, columns).sort((a, b) => keyScore(b) - keyScore(a));
  if (key === undefined) return undefined;
  const comparable = columns.filter((pair) => !key.includes(pair) && pair.type !== null).length;
  const score =
    keyScore(key) +
    nameScore(source.name, downstream.name) +
    Math.min(comparable, 5) +
    (timeColumns(source).length > 0 ? 2 : 0);
  return { source, downstream, columns, key, score };
}

function guessedCandidate(source: CatalogueTable, downstream: CatalogueTable): Candidate | undefined {
  const [key] = [...guessKeys(source, downstream)].sort((a, b) => keyScore(b) - keyScore(a));
  if (key === undefined) return undefined;
  const free = pairColumns(source, downstream).filter(
    (pair) => !key.some((part) => part.source === pair.source || part.downstream === pair.downstream),
  );
  const named = [...key, ...free];
  return {
    source,
    downstream,
    key,
    columns: [...named, ...guessFields(source, downstream, named)],
    score: 0,
  };
}

/** Unique keys of either side whose columns are on both, in the order of the key. */
function sharedKeys(
  source: CatalogueTable,
  downstream: CatalogueTable,
  columns: readonly ColumnPair[],
): (readonly ColumnPair[])[] {
  const pairsOf = (table: CatalogueTable, columnOf: (pair: ColumnPair) => CatalogueColumn) =>
    [table.primaryKey, ...table.uniqueKeys].flatMap((names) => {
      const pairs = names.flatMap(
        (name) => columns.find((pair) => columnOf(pair).name === name && pair.type !== null) ?? [],
      );
      return names.length > 0 && pairs.length === names.length ? [pairs] : [];
    });
  return [...pairsOf(source, (pair) => pair.source), ...pairsOf(downstream, (pair) => pair.downstream)];
}

/** A text that a person or a process gave is a business key; a number that one database counted is not. */
function keyScore(key: readonly ColumnPair[]): number {
  const surrogate = isSurrogate(key) ? -20 : 0;
  const text = key.every((pair) => pair.type === 'text' || pair.type === 'uuid') ? 6 : 0;
  const nullable = key.some((pair) => pair.source.nullable) ? -3 : 0;
  return 10 + surrogate + text + nullable - key.length;
}

function isSurrogate(key: readonly ColumnPair[]): boolean {
  return key.some(
    (pair) =>
      pair.source.generated ||
      pair.downstream.generated ||
      (key.length === 1 && pair.name.toLowerCase() === 'id' && pair.type === 'integer'),
  );
}

function nameScore(a: string, b: string): number {
  const [one, other] = [plainName(a).replace(/s$/, ''), plainName(b).replace(/s$/, '')];
  if (one === other) return 12;
  return one.includes(other) || other.includes(one) ? 6 : 0;
}

function proposal({ source, downstream, columns, key }: Candidate): ProposedPair {
  const [sourceTime] = timeColumns(source);
  const [downstreamTime] = timeColumns(downstream);
  const chosen = new Set<CatalogueColumn | undefined>([sourceTime, downstreamTime]);
  const fields = columns.filter(
    (pair) =>
      !key.includes(pair) &&
      pair.type !== null &&
      !isBookkeeping(pair.source) &&
      !pair.source.generated &&
      !pair.downstream.generated &&
      !chosen.has(pair.source) &&
      !chosen.has(pair.downstream),
  );
  const side = (
    table: CatalogueTable,
    which: 'source' | 'downstream',
    time: CatalogueColumn | undefined,
  ): ProposedSide => ({
    table: fullName(table),
    key: Object.fromEntries(key.map((pair) => [pair.name, pair[which].name])),
    time: time?.name ?? null,
    fields: Object.fromEntries(fields.map((pair) => [pair.name, pair[which].name])),
  });
  return {
    name: nameOf(source.name),
    key: key.map((pair) => pair.name),
    source: side(source, 'source', sourceTime),
    downstream: side(downstream, 'downstream', downstreamTime),
    compare: Object.fromEntries(
      fields.flatMap((pair) => (pair.type === null ? [] : [[pair.name, pair.type]])),
    ),
    warnings: [
      ...keyWarnings(key),
      ...guessWarnings(source, downstream, columns),
      ...timeWarnings('source', source, sourceTime, 'the records of a window cannot be found'),
      ...timeWarnings('downstream', downstream, downstreamTime, 'what only the downstream has is not found'),
      ...columns
        .filter((pair) => pair.type === null)
        .map(
          (pair) =>
            `${pair.name} is left out: ${pair.source.native} and ${pair.downstream.native} do not compare.`,
        ),
      ...(fields.length === 0
        ? ['No other column is on both sides: only missing and extra records are found.']
        : []),
    ],
  };
}

function keyWarnings(key: readonly ColumnPair[]): string[] {
  const names = key.map((pair) => pair.name).join(', ');
  const warnings: string[] = [];
  if (isSurrogate(key))
    warnings.push(
      `The key ${names} looks like a number that each database counts by itself. Use a business key that both sides were given, or make sure that the ids are copied.`,
    );
  if (key.some((pair) => pair.source.nullable || pair.downstream.nullable))
    warnings.push(`The key ${names} may be null; records without it cannot be decided.`);
  return warnings;
}

function guessWarnings(
  source: CatalogueTable,
  downstream: CatalogueTable,
  columns: readonly ColumnPair[],
): string[] {
  const guessed = columns.filter((pair) => pair.guessed);
  if (guessed.length === 0) return [];
  const lonely = (table: CatalogueTable, side: 'source' | 'downstream') =>
    table.columns
      .filter(
        (column) =>
          !columns.some((pair) => pair[side] === column) &&
          !column.generated &&
          !isBookkeeping(column) &&
          !timeColumns(table).includes(column),
      )
      .map((column) => column.name)
      .join(', ') || 'none';
  return [
    ...guessed.map(
      (pair) =>
        `${pair.name} is read as ${pair.downstream.name} on the downstream: a guess by type, not by name.`,
    ),
    `Not compared, since nothing fits: ${lonely(source, 'source')} of the source, ${lonely(downstream, 'downstream')} of the downstream. Name under fields what belongs together.`,
  ];
}

function timeWarnings(
  side: 'source' | 'downstream',
  table: CatalogueTable,
  time: CatalogueColumn | undefined,
  consequence: string,
): string[] {
  const column = `The ${side}'s ${fullName(table)}.${time?.name ?? ''}`;
  if (time === undefined)
    return [`The ${side}'s ${fullName(table)} has no timestamp column: ${consequence}.`];
  const warnings = hasZone(time) ? [] : [`${column} has no time zone; it is read as UTC.`];
  if (time.nullable) warnings.push(`${column} may be null; such records are in no window.`);
  return warnings;
}

function fullName(table: CatalogueTable): string {
  return `${table.schema}.${table.name}`;
}

function nameOf(table: string): string {
  const name = table
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 60);
  return name === '' ? 'records' : name;
}
