import type { Path } from '../path.ts';

export interface Placeholder {
  /** What stands between the braces: `source.amount`. */
  readonly name: string;
  readonly path: Path;
}

/** Every `{name}` and `{name|number}` in the strings of a value, keys of objects included. */
export function placeholdersIn(value: unknown, path: Path): readonly Placeholder[] {
  if (typeof value === 'string')
    return [...value.matchAll(/\{([\p{L}\p{N}_.|\s-]+)\}/gu)].map(([, inner = '']) => ({
      name: inner.replace(/\|number$/, ''),
      path,
    }));
  if (Array.isArray(value)) return value.flatMap((item, at) => placeholdersIn(item, [...path, at]));
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, item]) => [
    ...placeholdersIn(key, path),
    ...placeholdersIn(item, [...path, key]),
  ]);
}
