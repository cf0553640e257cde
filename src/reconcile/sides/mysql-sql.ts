/**
 * Names and values as MySQL and MariaDB read them. Text and bytes are written in hexadecimal: no quote, backslash,
 * character set or SQL mode can give them another meaning, so they are as safe as bound parameters (rule 5.1). The
 * protocol that binds parameters on the server would return binary cells instead of the server's text.
 */

export function quoteIdentifier(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

/**
 * A table name as config writes it, `database.table` or `table`, quoted part by part and taken as written. A part that
 * holds a dot or a backtick is written in backticks, as in SQL. Throws `TypeError` when it is no table name.
 */
export function quoteTable(name: string): string {
  const parts = name.match(/`(?:[^`]|``)+`|[^`.]+/g) ?? [];
  if (parts.length === 0 || parts.length > 2 || parts.join('.') !== name) {
    throw new TypeError(`"${name}" is no table name; write table or database.table`);
  }
  return parts.map((part) => (part.startsWith('`') ? part : quoteIdentifier(part))).join('.');
}

export function textLiteral(text: string): string {
  return `_utf8mb4 X'${Buffer.from(text, 'utf8').toString('hex')}'`;
}

/** The text in the character set and collation of a column, so that the column itself is compared and its index used. */
export function collatedLiteral(text: string, charset: string, collation: string): string {
  return `convert(${textLiteral(text)} using ${word(charset)}) collate ${word(collation)}`;
}

/** `hex` is canonical: lower case, two digits a byte. */
export function bytesLiteral(hex: string): string {
  return `X'${hex}'`;
}

/** Names of character sets and collations come from the server and are never quoted. */
function word(name: string): string {
  if (!/^[A-Za-z0-9_]+$/.test(name))
    throw new TypeError(`"${name}" is no name of a character set or collation`);
  return name;
}
