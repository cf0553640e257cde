/** Statement text for PostgreSQL sides. Identifiers are quoted, values are only ever bound (rule 5.1). */

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * A table name as config writes it, `schema.table` or `table`, quoted part by part and taken as written. A part that
 * holds a dot or a quote is written in double quotes, as in SQL. Throws `TypeError` when it is no table name.
 */
function quoteTable(name: string): string {
  const parts = name.match(/"(?:[^"]|"")+"|[^".]+/g) ?? [];
  if (parts.length === 0 || parts.length > 3 || parts.join('.') !== name) {
    throw new TypeError(`"${name}" is no table name; write table or schema.table`);
  }
  return parts.map((part) => (part.startsWith('"') ? part : quoteIdentifier(part))).join('.');
}

export interface Relation {
  /** What stands after FROM. */
  readonly from: string;
  /** The config's own condition on the records, or undefined. */
  readonly where: string | undefined;
}

export function relationOf(config: {
  readonly table?: string | undefined;
  readonly query?: string | undefined;
  readonly where?: string | undefined;
}): Relation {
  if (config.table !== undefined) return { from: quoteTable(config.table), where: config.where };
  // The line break keeps a comment at the end of the query from swallowing the bracket.
  const query = (config.query ?? '').trim().replace(/;$/, '');
  return { from: `(${query}\n) as records`, where: config.where };
}

/** A SELECT over the relation. `conditions` are joined with the config's own one. */
export function select(
  relation: Relation,
  items: readonly string[],
  conditions: readonly string[] = [],
  tail = '',
): string {
  const all = [...(relation.where === undefined ? [] : [`(${relation.where}\n)`]), ...conditions];
  const where = all.length > 0 ? ` where ${all.join(' and ')}` : '';
  return `select ${items.join(', ')} from ${relation.from}${where}${tail === '' ? '' : ` ${tail}`}`;
}
