const TEXTS: ReadonlyMap<string, 'true' | 'false'> = new Map([
  ['t', 'true'],
  ['true', 'true'],
  ['1', 'true'],
  ['f', 'false'],
  ['false', 'false'],
  ['0', 'false'],
]);

/** `true` or `false` from the forms that databases and JSON use: `t`, `true`, `1`, `f`, `false`, `0`. */
export function canonicalBoolean(text: string): 'true' | 'false' | undefined {
  return TEXTS.get(text.trim().toLowerCase());
}
