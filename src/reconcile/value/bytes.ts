/** Lower-case hex from PostgreSQL's `\x00ff`, from `0x00FF` or from plain hex. */
export function canonicalBytes(text: string): string | undefined {
  const hex = /^(?:\\x|0x)?((?:[0-9a-f]{2})*)$/.exec(text.trim().toLowerCase());
  return hex?.[1];
}
