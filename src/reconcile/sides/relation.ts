/** Statement text that all SQL sides share. Identifiers are quoted by the dialect, values are only ever bound (rule 5.1). */

export interface Relation {
  /** What stands after FROM. */
  readonly from: string;
  /** The config's own condition on the records, or undefined. */
  readonly where: string | undefined;
}

/** `quoteTable` throws when a name is no table name. */
export function relationOf(
  config: {
    readonly table?: string | undefined;
    readonly query?: string | undefined;
    readonly where?: string | undefined;
  },
  quoteTable: (name: string) => string,
): Relation {
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
