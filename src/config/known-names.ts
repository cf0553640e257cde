import { nearest } from './nearest.ts';

/** What to write instead of a name that is unknown: the near one first, and always all of them. */
export function knownNames(word: string, names: readonly string[], what: string): string {
  const near = nearest(word, names);
  const all = names.length === 0 ? `there are no ${what}` : `known ${what}: ${names.join(', ')}`;
  return near === undefined ? all : `did you mean "${near}"? ${all}`;
}
