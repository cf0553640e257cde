/** What a session of a side is pinned to, whatever the server's, the user's or a proxy's defaults are. */

export type Flavour = 'mysql' | 'mariadb';

export function flavourOf(version: string): Flavour {
  return /mariadb/i.test(version) ? 'mariadb' : 'mysql';
}

/**
 * No mode that gives quotes, backslashes, `||`, padding or fractions another meaning. A statement that would cut or
 * change a value fails.
 */
const SQL_MODE = ['STRICT_TRANS_TABLES', 'ERROR_FOR_DIVISION_BY_ZERO', 'NO_ENGINE_SUBSTITUTION'];

const CHARSET = 'utf8mb4';
/** A fixed offset: a named zone would shift times over a clock change. */
const TIME_ZONE = '+00:00';

/** Sorting ignores what comes after this many bytes; an InnoDB key has at most 3072. */
const SORTED_BYTES = 4096;
/** A server that waits for us to take rows waits this long; TCP finds out earlier when we are gone. */
const WRITE_TIMEOUT_S = 86_400;

export function pinStatements(flavour: Flavour, statementTimeout: number): readonly string[] {
  const settings = [
    `session time_zone = '${TIME_ZONE}'`,
    `session sql_mode = '${SQL_MODE.join(',')}'`,
    // A server-wide limit would cut the result and say nothing.
    'session sql_select_limit = 18446744073709551615',
    'session sql_big_selects = 1',
    'session sql_auto_is_null = 0',
    'session autocommit = 1',
    `session max_sort_length = ${SORTED_BYTES}`,
    `session net_write_timeout = ${WRITE_TIMEOUT_S}`,
    `session lock_wait_timeout = ${Math.max(1, Math.ceil(statementTimeout / 1000))}`,
    // A long IN list would become a join, which compares by another collation than the column's.
    ...(flavour === 'mariadb' ? ['session in_predicate_conversion_threshold = 0'] : []),
  ];
  return [
    `set names ${CHARSET} collate ${CHARSET}_bin, ${settings.join(', ')}`,
    'set session transaction isolation level repeatable read',
    limitStatement(flavour, statementTimeout),
  ];
}

/** The server's limit for each statement, in milliseconds; 0 for none. */
export function limitStatement(flavour: Flavour, ms: number): string {
  const limit = Math.ceil(ms);
  return flavour === 'mariadb'
    ? `set session max_statement_time = ${limit / 1000}`
    : `set session max_execution_time = ${limit}`;
}

export const PIN_CHECK =
  'select @@session.character_set_client, @@session.character_set_connection, @@session.character_set_results, ' +
  '@@session.time_zone, @@session.sql_mode';

/** Says what is not as it was pinned, in a sentence; undefined when all is. */
export function wrongPin(settings: readonly string[]): string | undefined {
  const [client, connection, results, zone, mode = ''] = settings;
  const charset = [client, connection, results].find((name) => name !== CHARSET);
  if (charset !== undefined) {
    return `the session's character set is ${charset || 'not known'} and not ${CHARSET}, in which every character can be told from every other; a proxy or the server changes it`;
  }
  if (zone !== TIME_ZONE)
    return `the session's time zone is ${zone} and not ${TIME_ZONE}; a proxy or the server changes it`;
  const modes = new Set(mode.split(','));
  if (modes.size !== SQL_MODE.length || SQL_MODE.some((each) => !modes.has(each))) {
    return `the session's sql_mode is "${mode}" and not "${SQL_MODE.join(',')}"; a proxy or the server changes it`;
  }
  return undefined;
}
