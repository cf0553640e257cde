/** Names as PostgreSQL quotes them. */

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * A table name as config writes it, `schema.table` or `table`, quoted part by part and taken as written. A part that
 * holds a dot or a quote is written in double quotes, as in SQL. Throws `TypeError` when it is no table name.
 */
export function quoteTable(name: string): string {
  const parts = name.match(/"(?:[^"]|"")+"|[^".]+/g) ?? [];
  if (parts.length === 0 || parts.length > 3 || parts.join('.') !== name) {
    throw new TypeError(`"${name}" is no table name; write table or schema.table`);
  }
  return parts.map((part) => (part.startsWith('"') ? part : quoteIdentifier(part))).join('.');
}
