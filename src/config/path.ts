/** Where something stands in a config document: keys and list positions from the top. */
export type Path = readonly (string | number)[];

/** A path as a person writes it: `reconciliations.payments.repair.mismatched[0].when`. */
export function formatPath(path: Path): string {
  return path
    .map((part, at) => (typeof part === 'number' ? `[${part}]` : at === 0 ? part : `.${part}`))
    .join('');
}

/** True when `path` is `ancestor` or stands inside it. */
export function isWithin(path: Path, ancestor: Path): boolean {
  return ancestor.length <= path.length && ancestor.every((part, at) => part === path[at]);
}

/** The value at a path; `undefined` when there is none. */
export function valueAt(document: unknown, path: Path): unknown {
  let value = document;
  for (const part of path) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<string | number, unknown>)[part];
  }
  return value;
}
