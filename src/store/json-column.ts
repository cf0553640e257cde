/**
 * A value as text for a `jsonb` column; null stays null. PostgreSQL's jsonb holds neither U+0000 nor half a surrogate
 * pair: each becomes U+FFFD, visible, instead of the whole row being lost. (The driver would write an array as a
 * PostgreSQL array, so values never go to it as they are.)
 */
export function jsonColumn(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  return JSON.stringify(value).replace(/\\(u0000|ud[89a-f][0-9a-f]{2}|.)/g, (found, rest: string) =>
    rest.length === 5 ? '\\ufffd' : found,
  );
}
